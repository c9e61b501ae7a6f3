"""Hand-written and random streams over places."""

import random

from cases_hashes import batches

NAMES = ["geoadd", "geopos", "geodist", "geohash", "geosearch", "geosearchstore", "georadius",
         "georadiusbymember", "georadius_ro", "georadiusbymember_ro"]
SICILY = ["GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
          "GEOADD Sicily 13.583333 37.316667 Agrigento 12.496366 41.902782 Rome 2.352222 48.856614 Paris"]


def arity_cases():
    for name in NAMES:
        yield "arity of " + name, [tuple([name] + ["1"] * count) for count in range(10)]
        yield "COMMAND INFO of " + name, [
            ("COMMAND", "INFO", name), ("COMMAND", "GETKEYS", name, "a", "b", "c", "d", "e", "f", "g", "h"),
            ("COMMAND", "GETKEYS", name, "a", "1", "2", "3", "km", "STORE", "b", "STOREDIST", "c"),
            ("COMMAND", "GETKEYS", name, "a", "m", "3", "km", "storedist", "b", "x", "STORE"),
            ("COMMAND", "GETKEYSANDFLAGS", name, "a", "1", "2", "3", "km", "STORE", "b", "ASC")]


def place_cases():
    yield "GEOADD and its relatives", SICILY + [
        "GEOADD Sicily 13 38 Palermo 1 2 new", "GEOADD Sicily CH 13.1 38 Palermo 1 2 newer",
        "GEOADD Sicily NX 9 9 Palermo 9 9 newest", "GEOADD Sicily XX CH 13.361389 38.115556 Palermo 1 1 none",
        "GEOADD Sicily NX XX 1 1 a", "GEOADD Sicily 1 1", "GEOADD Sicily 1 1 a 2", "GEOADD Sicily NX CH CH",
        "GEOADD Sicily INCR 1 1 a", "GEOADD Sicily x 1 a", "GEOADD Sicily 1 x a", "GEOADD Sicily 181 1 a",
        "GEOADD Sicily 1 85.06 a", "GEOADD Sicily -181 -90 a", "GEOADD Sicily inf 0 a", "GEOADD Sicily nan 0 a",
        "GEOADD Sicily 1 1 a 1e308 1 b", "EXISTS a", "ZRANGE Sicily 0 -1 WITHSCORES", "ZREM Sicily new newer newest",
        "GEOADD none XX 1 1 a", "EXISTS none", "GEOADD edge 180 85.05112878 a -180 -85.05112878 b 0 0 c",
        "GEOADD edge -180 85.05112878 d 180 -85.05112878 e -0.0 -0.0 f 179.999999999 0 g 1e-300 -1e-300 h",
        "ZRANGE edge 0 -1 WITHSCORES", "GEOPOS edge a b c d e f g h none", "GEOHASH edge a b c d e f g h none",
        "GEOPOS Sicily", "GEOHASH Sicily", "GEOPOS none a b", "GEOHASH none a b", "GEOPOS none",
        "GEOPOS Sicily Palermo none Catania", "GEOHASH Sicily Palermo none Catania Rome Paris",
        "ZADD odd -1 a 1e300 b inf c -inf d 4503599627370496 e 0.5 f 18446744073709551615 g -1e19 h 1e19 i",
        "GEOPOS odd a b c d e f g h i", "GEOHASH odd a b c d e f g h i", "GEODIST odd a b", "GEODIST odd c e"]
    steps = list(SICILY)
    for unit in ("", "m", "KM", "ft", "mi", "x", "m m"):
        steps += ["GEODIST Sicily Palermo Catania " + unit, "GEODIST Sicily Palermo none " + unit,
                  "GEODIST none Palermo Catania " + unit, "GEODIST Sicily Rome Rome " + unit]
    yield "GEODIST", steps
    yield "places and wrong types", ["SET s v"] + [
        "GEOADD s 1 1 a", "GEOADD s x 1 a", "GEOPOS s a", "GEOHASH s a", "GEODIST s a b", "GEODIST s a b x",
        "GEOSEARCH s FROMLONLAT x 1 BYRADIUS 1 m", "GEOSEARCHSTORE d s FROMMEMBER a BYRADIUS 1 m",
        "GEORADIUS s x 1 1 m", "GEORADIUSBYMEMBER s a x m", "GEORADIUS_RO s 1 1 1 m", "TYPE s"]


def search_cases():
    areas = ["BYRADIUS 200 km", "BYRADIUS 0 m", "BYRADIUS 100 mi", "BYRADIUS 1e7 ft", "BYRADIUS 20000 km",
             "BYRADIUS -1 m", "BYRADIUS x m", "BYRADIUS 1 x", "BYRADIUS inf m", "BYBOX 400 400 km", "BYBOX 0 0 m",
             "BYBOX 10 1000 mi", "BYBOX -1 1 m", "BYBOX 1 -1 m", "BYBOX x 1 m", "BYBOX 1 x m", "BYBOX 1 1 x",
             "BYBOX 40000 40000 km", "BYRADIUS 200", "BYBOX 1 1", "", "BYRADIUS 1 km BYBOX 1 1 km",
             "BYBOX 1 1 km BYRADIUS 1 km", "BYRADIUS 1 km BYRADIUS 200 km"]
    centers = ["FROMMEMBER Palermo", "FROMLONLAT 15 37", "FROMMEMBER none", "FROMLONLAT 200 37", "FROMLONLAT x 37",
               "", "FROMMEMBER Palermo FROMLONLAT 15 37", "FROMLONLAT 15 37 FROMMEMBER Palermo", "FROMMEMBER",
               "FROMMEMBER none FROMMEMBER Palermo", "FROMLONLAT 180 85", "FROMLONLAT -180 -85"]
    shown = "ASC WITHCOORD WITHDIST WITHHASH"
    steps = list(SICILY)
    for area in areas:
        for center in centers:
            steps += ["GEOSEARCH Sicily %s %s %s" % (center, area, shown),
                      "GEOSEARCH none %s %s %s" % (area, center, shown),
                      "GEOSEARCHSTORE d Sicily %s %s" % (center, area), "ZRANGE d 0 -1 WITHSCORES",
                      "GEOSEARCHSTORE d Sicily %s %s STOREDIST" % (center, area), "ZRANGE d 0 -1 WITHSCORES"]
    yield "GEOSEARCH", batches(steps)
    options = ["", "ASC", "DESC", "COUNT 2", "COUNT 2 DESC", "COUNT 2 ANY", "ANY", "ANY COUNT 1", "COUNT 0", "COUNT -1",
               "COUNT x", "COUNT", "COUNT 100", "COUNT 2 ANY ASC", "WITHCOORD", "WITHDIST", "WITHHASH", "ASC DESC",
               "WITHDIST WITHCOORD ASC", "what", "STORE d", "STOREDIST d", "STORE d STOREDIST e",
               "STOREDIST e STORE d", "STORE", "STOREDIST", "STORE d WITHDIST", "STORE d COUNT 2",
               "STOREDIST d COUNT 1 DESC", "STORE Sicily", "STORE s", "FROMMEMBER Rome", "BYRADIUS 1 m",
               "COUNT 3 COUNT 1", "COUNT 5000000000"]
    steps = list(SICILY)
    for option in options:
        for call in ("GEORADIUS Sicily 15 37 200 km", "GEORADIUS_RO Sicily 15 37 200 km",
                     "GEORADIUSBYMEMBER Sicily Palermo 200 km", "GEORADIUSBYMEMBER_RO Sicily Palermo 200 km",
                     "GEORADIUSBYMEMBER Sicily none 200 km", "GEORADIUS none 15 37 200 km",
                     "GEORADIUSBYMEMBER none Palermo x x", "GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km",
                     "GEOSEARCHSTORE d Sicily FROMLONLAT 15 37 BYRADIUS 200 km",
                     "geoSearch Sicily %s FROMMEMBER Palermo" % option, "geoSearchStore d Sicily BYBOX 1 1 m %s" % option):
            steps += ["SET s v", call + " " + option, "ZRANGE d 0 -1 WITHSCORES", "ZRANGE e 0 -1 WITHSCORES",
                      "ZCARD Sicily", "DEL d e s Sicily"] + SICILY
    yield "options of searches", batches(steps)
    yield "a search in the target itself", SICILY + [
        "EXPIRE Sicily 100", "GEOSEARCHSTORE Sicily Sicily FROMMEMBER Palermo BYRADIUS 200 km", "TTL Sicily",
        "ZRANGE Sicily 0 -1 WITHSCORES", "GEORADIUS Sicily 15 37 10 m STORE Sicily", "EXISTS Sicily",
        "GEOSEARCHSTORE Sicily Sicily FROMMEMBER Palermo BYRADIUS 200 km", "SET Sicily v",
        "GEOSEARCHSTORE d Sicily FROMMEMBER Palermo BYRADIUS 200 km", "SET d v",
        "GEOSEARCHSTORE d none FROMMEMBER Palermo BYRADIUS 200 km", "EXISTS d"]
    yield "transactions on places", SICILY + [
        "MULTI", "GEOADD Sicily 1 1 a", "GEOSEARCH Sicily FROMMEMBER a BYRADIUS 1 km",
        "GEORADIUS Sicily 15 37 200 km STORE Sicily", "ZRANGE Sicily 0 -1", "EXEC", "MULTI",
        "GEORADIUS Sicily 15 37 200 km STORE d", "ZRANGE d 0 -1", "EXEC", "ZRANGE d 0 -1"]


def random_stream(seed):
    rng = random.Random(seed)
    pick = rng.choice
    # All over the map, in one town, at the seam of the map, or near a pole.
    middle = [(0, 0, 180, 85), (13, 38, 1, 1), (179.9, 0, 0.1, 5), (-179.9, 10, 0.1, 5), (20, 84, 160, 1),
              (0, -84, 180, 1), (0, 0, 0.001, 0.001), (100, 60, 40, 20)][seed % 8]
    def place():
        longitude = middle[0] + rng.uniform(-1, 1) * middle[2]
        latitude = middle[1] + rng.uniform(-1, 1) * middle[3]
        return ["%.7f" % max(-180, min(180, longitude)), "%.7f" % max(-85.05, min(85.05, latitude))]
    # Each name is given its place once: two at the same one have no order.
    names = ["m%d" % i for i in range(pick([20, 100, 300]))]
    steps = []
    for begin in range(0, len(names), 30):
        steps.append(tuple(["GEOADD", "g"] + [item for name in names[begin:begin + 30]
                                              for item in place() + [name]]))
    size = lambda: "%.3f" % (10 ** rng.uniform(-1, 7.4))
    unit = lambda: pick(["m", "m", "km", "ft", "mi"])
    center = lambda: pick([["FROMMEMBER", pick(names)], ["FROMLONLAT"] + place()])
    area = lambda: pick([["BYRADIUS", size(), unit()], ["BYBOX", size(), size(), unit()]])
    order = lambda: pick([[], ["ASC"], ["DESC"]])
    count = lambda: pick([[], ["COUNT", str(rng.randint(1, 40))], ["COUNT", str(rng.randint(1, 40)), "ANY"]])
    shown = lambda: [word for word in ("WITHCOORD", "WITHDIST", "WITHHASH") if rng.random() < 0.4]
    make = [
        lambda: ["GEOSEARCH", "g"] + center() + area() + order() + count() + shown(),
        lambda: ["GEOSEARCH", "g"] + center() + area() + shown(),
        lambda: ["GEORADIUS", "g"] + place() + [size(), unit()] + order() + count() + shown(),
        lambda: ["GEORADIUSBYMEMBER", "g", pick(names), size(), unit()] + order() + count(),
        lambda: ["GEOSEARCHSTORE", "d", "g"] + center() + area() + pick([[], ["STOREDIST"]]),
        lambda: ["ZRANGE", "d", "0", "-1", "WITHSCORES"],
        lambda: ["GEODIST", "g", pick(names), pick(names), unit()], lambda: ["GEOPOS", "g", pick(names)],
        lambda: ["GEOHASH", "g", pick(names), pick(names)], lambda: ["ZSCORE", "g", pick(names)]]
    return steps + [tuple(pick(make)()) for _ in range(200)]


def random_cases():
    for seed in range(16):
        yield "random places %d" % seed, batches(random_stream(seed), 25)


def cases():
    for make in (arity_cases, place_cases, search_cases, random_cases):
        yield from make()
