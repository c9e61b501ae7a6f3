// Frames and messages of tcp: what is encoded comes back, and everything else is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/coro/socket.h"
#include "client_core/fabric/tcp_frame_writer.h"
#include "client_core/layout/tcp_wire.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

using Bytes = std::vector<std::byte>;

struct Batch {
  std::vector<TcpOp> ops;
  std::vector<Bytes> payloads;
};

// Operations that fit a frame.
Batch RandomBatch(Rng& rng, uint32_t bytes_max) {
  Batch batch;
  const size_t count = rng.Below(kTcpOpsMax + 1);
  size_t request_bytes = 0;
  size_t reply_bytes = 0;
  batch.payloads.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    TcpOp op;
    op.kind = static_cast<TcpOpKind>(rng.Below(5));
    op.bytes = IsOnWord(op.kind) ? 8 : static_cast<uint32_t>(rng.Below(bytes_max));
    op.offset = rng.Next();
    op.expected = rng.Next();
    op.operand = rng.Next();
    request_bytes += TcpRequestBytes(op.kind, op.bytes);
    reply_bytes += TcpReplyBytes(op.kind, op.bytes);
    if (request_bytes > kTcpBodyBytesMax || reply_bytes > kTcpBodyBytesMax) break;
    Bytes payload(op.kind == TcpOpKind::kWrite ? op.bytes : 0);
    for (std::byte& byte : payload) byte = static_cast<std::byte>(rng.Next());
    batch.payloads.push_back(std::move(payload));
    op.data = batch.payloads.back().data();
    batch.ops.push_back(op);
  }
  return batch;
}

Bytes Encode(const Batch& batch, uint64_t sequence) {
  Bytes frame(kTcpFrameBytesMax);
  std::byte* to = frame.data() + kTcpHeaderBytes;
  for (const TcpOp& op : batch.ops) {
    to = EncodeTcpOp(op, to);
    if (op.kind != TcpOpKind::kWrite || op.bytes == 0) continue;
    std::memcpy(to, op.data, op.bytes);
    to += op.bytes;
  }
  frame.resize(static_cast<size_t>(to - frame.data()));
  SealTcpFrame({.sequence = sequence,
                .body_bytes = static_cast<uint32_t>(frame.size() - kTcpHeaderBytes),
                .kind = TcpFrameKind::kBatch,
                .ops = static_cast<uint8_t>(batch.ops.size())},
               frame.data());
  return frame;
}

void ExpectEqual(const Batch& batch, std::span<const TcpOp> decoded) {
  for (size_t i = 0; i < batch.ops.size(); ++i) {
    const TcpOp& was = batch.ops[i];
    const TcpOp& is = decoded[i];
    ASSERT_EQ(is.kind, was.kind);
    ASSERT_EQ(is.bytes, was.bytes);
    ASSERT_EQ(is.offset, was.offset);
    if (was.kind == TcpOpKind::kCas) {
      ASSERT_EQ(is.expected, was.expected);
    }
    if (IsOnWord(was.kind)) {
      ASSERT_EQ(is.operand, was.operand);
    }
    if (was.kind == TcpOpKind::kWrite && was.bytes != 0) {
      ASSERT_EQ(std::memcmp(is.data, was.data, was.bytes), 0);
    }
  }
}

TEST(FabricTcpWireTest, AnyBatchThatIsEncodedComesBack) {
  for (int seed = 0; seed < Scaled(3000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(static_cast<uint64_t>(seed));
    const Batch batch = RandomBatch(rng, seed % 3 == 0 ? 30'000 : 100);
    const uint64_t sequence = rng.Next();
    const Bytes bytes = Encode(batch, sequence);
    TcpFrame frame;
    size_t frame_bytes = 0;
    ASSERT_EQ(DecodeTcpFrame(bytes, sequence, &frame, &frame_bytes), TcpError::kNone);
    ASSERT_EQ(frame_bytes, bytes.size());
    ASSERT_EQ(frame.header.ops, batch.ops.size());
    TcpOp ops[kTcpOpsMax];
    ASSERT_EQ(DecodeTcpOps(frame.body, frame.header.ops, ops), TcpError::kNone);
    ExpectEqual(batch, ops);
    // The same bytes under another number are not the frame that is due.
    ASSERT_EQ(DecodeTcpFrame(bytes, sequence + 1, &frame, &frame_bytes), TcpError::kSequence);
  }
}

TEST(FabricTcpWireTest, AFrameIsIncompleteUpToItsLastByteAndWholeWithMoreBehindIt) {
  Rng rng(1);
  Bytes bytes = Encode(RandomBatch(rng, 100), 5);
  TcpFrame frame;
  size_t frame_bytes = 1;
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_EQ(DecodeTcpFrame({bytes.data(), length}, 5, &frame, &frame_bytes), TcpError::kNone);
    ASSERT_EQ(frame_bytes, 0U) << length;
  }
  const size_t whole = bytes.size();
  bytes.resize(whole + 100, std::byte{0xff});
  ASSERT_EQ(DecodeTcpFrame(bytes, 5, &frame, &frame_bytes), TcpError::kNone);
  EXPECT_EQ(frame_bytes, whole);
}

TEST(FabricTcpWireTest, EveryFlippedBitIsSeen) {
  Rng rng(2);
  const Bytes bytes = Encode(RandomBatch(rng, 60), 9);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes bad = bytes;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    TcpFrame frame;
    size_t frame_bytes = 0;
    const TcpError error = DecodeTcpFrame(bad, 9, &frame, &frame_bytes);
    // A length that grew may also wait for bytes that never come.
    ASSERT_TRUE(error != TcpError::kNone || frame_bytes == 0) << "bit " << bit;
  }
}

TEST(FabricTcpWireTest, ALengthBeyondTheLimitIsRefusedBeforeTheBodyIsThere) {
  TcpFrameHeader header{.sequence = 1, .body_bytes = kTcpBodyBytesMax + 1};
  TcpFrame frame;
  size_t frame_bytes = 0;
  for (const uint32_t bytes : {kTcpBodyBytesMax + 1, 1U << 31, ~0U}) {
    header.body_bytes = bytes;
    Bytes at(sizeof(header));
    std::memcpy(at.data(), &header, sizeof(header));
    EXPECT_EQ(DecodeTcpFrame(at, 1, &frame, &frame_bytes), TcpError::kTooLong) << bytes;
  }
}

TEST(FabricTcpWireTest, HeadersOutsideTheProtocolAreMalformed) {
  const TcpFrameHeader good{.sequence = 1};
  const auto decode = [](TcpFrameHeader header) {
    std::byte bytes[kTcpHeaderBytes];
    SealTcpFrame(header, bytes);
    TcpFrame frame;
    size_t frame_bytes = 0;
    return DecodeTcpFrame(bytes, 1, &frame, &frame_bytes);
  };
  EXPECT_EQ(decode(good), TcpError::kNone);
  for (int value = 0; value < 256; ++value) {
    TcpFrameHeader header = good;
    std::memcpy(&header.kind, &value, 1);
    // A goodbye without a reason is none.
    EXPECT_EQ(decode(header) == TcpError::kNone, value == 1 || value == 2 || value == 4) << value;
    header = good;
    header.kind = TcpFrameKind::kGoodbye;
    std::memcpy(&header.error, &value, 1);
    EXPECT_EQ(decode(header) == TcpError::kNone, value > 0 && value < kTcpErrorCount) << value;
    header = good;
    std::memcpy(&header.error, &value, 1);
    EXPECT_EQ(decode(header) == TcpError::kNone, value == 0) << value;
    header = good;
    header.ops = static_cast<uint8_t>(value);
    EXPECT_EQ(decode(header) == TcpError::kNone, value <= static_cast<int>(kTcpOpsMax)) << value;
    header = good;
    header.zero = static_cast<uint8_t>(value);
    EXPECT_EQ(decode(header) == TcpError::kNone, value == 0) << value;
  }
}

TEST(FabricTcpWireTest, BodiesThatTheirOperationsDoNotFillExactlyAreMalformed) {
  for (int seed = 0; seed < Scaled(300); ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    Batch batch = RandomBatch(rng, 60);
    if (batch.ops.empty()) continue;
    Bytes frame = Encode(batch, 1);
    frame.push_back(std::byte{0});
    const std::span<const std::byte> body = std::span(frame).subspan(kTcpHeaderBytes);
    TcpOp ops[kTcpOpsMax];
    for (size_t bytes = 0; bytes <= body.size(); ++bytes) {
      const TcpError error = DecodeTcpOps(body.first(bytes), batch.ops.size(), ops);
      ASSERT_EQ(error == TcpError::kNone, bytes + 1 == body.size()) << "seed " << seed;
    }
    ASSERT_EQ(DecodeTcpOps(body.first(body.size() - 1), batch.ops.size() - 1, ops),
              TcpError::kMalformed);
  }
}

TEST(FabricTcpWireTest, LengthsThatOverflowOrAskForTooMuchAreRefused) {
  TcpOp ops[kTcpOpsMax];
  std::byte body[kTcpDescriptorBytes * 3];
  TcpOp op{.kind = TcpOpKind::kWrite, .bytes = ~0U, .offset = ~uint64_t{0}};
  EncodeTcpOp(op, body);
  EXPECT_EQ(DecodeTcpOps({body, kTcpDescriptorBytes}, 1, ops), TcpError::kMalformed);
  op.kind = TcpOpKind::kRead;
  EncodeTcpOp(op, body);
  EXPECT_EQ(DecodeTcpOps({body, kTcpDescriptorBytes}, 1, ops), TcpError::kTooLong);
  // Each fits, their answers together do not.
  op.bytes = kTcpBodyBytesMax / 2 + 1;
  EncodeTcpOp(op, EncodeTcpOp(op, body));
  EXPECT_EQ(DecodeTcpOps({body, kTcpDescriptorBytes}, 1, ops), TcpError::kNone);
  EXPECT_EQ(DecodeTcpOps({body, 2 * kTcpDescriptorBytes}, 2, ops), TcpError::kTooLong);
  for (const uint32_t bytes : {0U, 7U, 9U, 1U << 30}) {
    op = {.kind = TcpOpKind::kFaa, .bytes = bytes};
    EncodeTcpOp(op, body);
    EXPECT_EQ(DecodeTcpOps({body, kTcpDescriptorBytes + 8}, 1, ops), TcpError::kMalformed);
  }
}

TEST(FabricTcpWireTest, EveryErrorAndRefusalHasATextOfItsOwn) {
  std::vector<std::string> texts;
  for (uint8_t i = 0; i < kTcpErrorCount; ++i) {
    texts.emplace_back(TcpErrorText(static_cast<TcpError>(i)));
  }
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::unique(texts.begin(), texts.end()), texts.end());
  texts.clear();
  for (uint8_t i = 0; i < kTcpRefusalCount; ++i) {
    texts.emplace_back(TcpRefusalText(static_cast<TcpRefusal>(i)));
  }
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::unique(texts.begin(), texts.end()), texts.end());
}

// The writer cuts frames into pieces and the socket cuts them again; what arrives is the same.
TEST(FabricTcpWireTest, WhatTheWriterSendsIsWhatASingleBufferWouldHold) {
  for (int seed = 0; seed < Scaled(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(static_cast<uint64_t>(seed));
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    const UniqueFd in(fds[0]);
    const UniqueFd out(fds[1]);
    const int small = 4096;
    setsockopt(out.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    TcpFrameWriter writer;
    Bytes expected;
    Bytes arrived;
    std::vector<Batch> batches;
    batches.reserve(20);
    uint64_t sequence = 0;
    Bytes chunk(10'000);
    while (sequence < 20 || !writer.empty()) {
      if (sequence < 20 && writer.HasRoom()) {
        batches.push_back(RandomBatch(rng, seed % 2 == 0 ? 30'000 : 1000));
        const Bytes frame = Encode(batches.back(), ++sequence);
        expected.insert(expected.end(), frame.begin(), frame.end());
        writer.Begin();
        for (const TcpOp& op : batches.back().ops) writer.Add(op);
        writer.End(TcpFrameKind::kBatch, static_cast<uint8_t>(batches.back().ops.size()), sequence);
      }
      if (rng.Below(2) == 0) {
        ASSERT_NE(writer.WriteTo(out.get()), TcpFrameWriter::Progress::kBroken);
      }
      const ssize_t got = recv(in.get(), chunk.data(), 1 + rng.Below(chunk.size()), MSG_DONTWAIT);
      if (got > 0) arrived.insert(arrived.end(), chunk.begin(), chunk.begin() + got);
    }
    ssize_t got = 0;
    while ((got = recv(in.get(), chunk.data(), chunk.size(), MSG_DONTWAIT)) > 0) {
      arrived.insert(arrived.end(), chunk.begin(), chunk.begin() + got);
    }
    ASSERT_TRUE(arrived == expected);
  }
}

TEST(FabricTcpWireTest, AMessageIsRefusedForEveryOtherLengthKindAndVersion) {
  const auto hello = EncodeTcpMessage(TcpHello{.cluster = 3, .worker = 4});
  TcpHello decoded;
  ASSERT_EQ(DecodeTcpHello(hello, &decoded), TcpRefusal::kNone);
  EXPECT_EQ(decoded.cluster, 3U);
  EXPECT_EQ(decoded.worker, 4U);
  for (size_t bytes = 0; bytes < hello.size(); ++bytes) {
    EXPECT_NE(DecodeTcpHello(std::span(hello).first(bytes), &decoded), TcpRefusal::kNone);
  }
  // Every bit of the prefix, and of the bytes that have few legal values, matters.
  for (size_t bit = 0; bit < sizeof(TcpPrefix) * 8; ++bit) {
    auto bad = hello;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const TcpRefusal refusal = DecodeTcpHello(bad, &decoded);
    const TcpRefusal expected = bit < 64   ? TcpRefusal::kNotOnetrip
                                : bit < 80 ? TcpRefusal::kVersion
                                           : TcpRefusal::kMalformed;
    EXPECT_EQ(refusal, expected) << "bit " << bit;
  }
  auto bad = hello;
  bad[offsetof(TcpHello, role)] = std::byte{9};
  EXPECT_EQ(DecodeTcpHello(bad, &decoded), TcpRefusal::kMalformed);

  TcpProof proof;
  TcpChallenge challenge;
  const auto challenge_bytes = EncodeTcpMessage(TcpChallenge());
  EXPECT_EQ(DecodeTcpChallenge(challenge_bytes, &challenge), TcpRefusal::kNone);
  EXPECT_EQ(DecodeTcpProof(challenge_bytes, &proof), TcpRefusal::kMalformed) << "of equal length";
  EXPECT_EQ(DecodeTcpProof(EncodeTcpMessage(TcpProof()), &proof), TcpRefusal::kNone);
  TcpVerdict verdict;
  for (int value = 0; value < 256; ++value) {
    auto bytes = EncodeTcpMessage(TcpVerdict());
    bytes[offsetof(TcpVerdict, refusal)] = static_cast<std::byte>(value);
    EXPECT_EQ(DecodeTcpVerdict(bytes, &verdict) == TcpRefusal::kNone, value < kTcpRefusalCount);
  }
}

TEST(FabricTcpWireTest, AStrangerIsKnownByItsFirstWrongByte) {
  const std::string_view stranger = "GET / HTTP/1.1\r\n";
  TcpMessage message{};
  size_t bytes = 0;
  for (size_t length = 1; length <= stranger.size(); ++length) {
    EXPECT_EQ(DecodeTcpPrefix(std::as_bytes(std::span(stranger)).first(length), &message, &bytes),
              TcpRefusal::kNotOnetrip);
  }
  const uint64_t magic = kTcpMagic;
  EXPECT_EQ(DecodeTcpPrefix(std::as_bytes(std::span(&magic, 1)).first(5), &message, &bytes),
            TcpRefusal::kNone);
  EXPECT_EQ(bytes, 0U);
}

}  // namespace
}  // namespace onetrip
