// What both clients of Node.js have in common: the steps, and telling run.py about them.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";

export { assert };
export const port = Number(process.argv[2]);
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Asks run.py for another life of the agent; resolves when it is there.
export async function restart() {
  const input = createInterface({ input: process.stdin });
  console.log("restart");
  await new Promise((resolve) => input.once("line", resolve));
  input.close();
}

// Adds one to a key by WATCH and MULTI, twenty times on each of four connections.
export async function countOptimistically(connect, addOne) {
  await Promise.all(
    [0, 1, 2, 3].map(async () => {
      const client = await connect();
      for (let i = 0; i < 20; ++i) {
        while (!(await addOne(client)));
      }
      await client.quit();
    }),
  );
}

export function manyNames(count) {
  return [...Array(count).keys()].map((i) => `element:${String(i).padStart(5, "0")}`);
}

export async function run(steps) {
  for (const [name, step] of Object.entries(steps)) {
    await step();
    console.log(`ok ${name}`);
  }
  process.exit(0);
}
