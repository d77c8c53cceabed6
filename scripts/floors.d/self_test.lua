-- The checks find what they are there for: each is given something wrong, and has to name it.
local c, graph = require "c", require "graph"

local function expect(actual, expected)
  if actual == expected then return end
  error(("the checks no longer find:\n%s\nthey find:\n%s"):format(expected, actual), 2)
end

local plan_text = [[
folder Sources/House
language C
circle 2
floor ground  # with a comment
  ground.c house.h
floor first
  first.c hall.c
floor roof
  roof.c
]]

local function use(from, to) return { from = from, to = to, line = 7, name = "of_" .. to } end

local function check_graph()
  local plan = graph.parse_plan(plan_text, "House")
  local paths = { "first.c", "ground.c", "hall.c", "house.h", "roof.c" }
  local function problems(...) return table.concat(graph.check(plan, paths, { ... }), "\n") end
  local both = { use("first.c", "hall.c"), use("hall.c", "first.c") }
  expect(problems(use("roof.c", "ground.c"), table.unpack(both)), "")
  expect(problems(use("ground.c", "roof.c")),
    "Sources/House/ground.c:7: 'of_roof.c' is of roof.c, "
    .. "on the floor 'roof' above the floor 'ground'")
  plan.circle = 1
  expect(problems(table.unpack(both)),
    "Sources/House: a circle of 2 files, of at most 1:\n"
    .. "  first.c:7 uses 'of_hall.c' of hall.c\n  hall.c:7 uses 'of_first.c' of first.c")
  paths[3], paths[6] = "shed.c", "hall.c"
  expect(problems(), "Sources/House/shed.c:1: no floor of House lists this file")
  paths[3], paths[6] = "house.h", nil
  expect(problems(), "House: hall.c isn't there")
  expect(select(2, pcall(graph.parse_plan, plan_text .. "  roof.c\n", "House")),
    "House:10: roof.c already has a floor")
  expect(select(2, pcall(graph.parse_plan, "folder a\nlanguage C\nflor b\n", "House")),
    "House:3: neither a setting nor files of a floor: flor b")

  -- Two circles: one of three files, and one that a chain leads to.
  local circles = graph.circles {
    use("a", "b"), use("b", "c"), use("c", "a"), use("c", "d"), use("d", "e"), use("e", "d"),
    use("f", "a"),
  }
  local texts = {}
  for i, circle in ipairs(circles) do texts[i] = table.concat(circle, " ") end
  expect(table.concat(texts, ", "), "a b c, d e")
end

local function check_c()
  local uses = c.uses {
    ["include/house.h"] = [[
      #define NOT_COUNTED() lay()
      void lay(int);
      void open_door(void);
      static inline int twice(int n) { return 2 * n; }
    ]],
    ["ground.c"] = [[
      #include "house.h"
      int stone = 1;
      static int hidden;
      void lay(int n) { hidden = n; }  // open_door()
      static __attribute__((noinline)) void shut(void) {}
    ]],
    ["roof.c"] = [[
      static void shut(void) {}
      /* lay(1) */
      typedef struct { int lay; } tile;
      static int twice;
      void open_door(void) {
        tile t = {.lay = 1}; t.lay = '"'; lay(t.lay); shut();
        const char *text = "lay(\"stone\")"; (void)text;
        int hidden = stone; twice = hidden;
      }
      static void (*const doors[])(void) = {open_door};
    ]],
    ["yard.c"] = "static void (*gate)(void) = open_door;\n"
      .. "int half(void) { return twice(1) / stone; }",
  }
  local texts = {}
  for i, each in ipairs(uses) do
    texts[i] = ("%s:%d %s %s"):format(each.from, each.line, each.name, each.to)
  end
  expect(table.concat(texts, "\n"), table.concat({
    "ground.c:1 house.h include/house.h",
    "roof.c:6 lay ground.c",
    "roof.c:8 stone ground.c",
    "yard.c:1 open_door roof.c",
    "yard.c:2 twice include/house.h",
    "yard.c:2 stone ground.c",
  }, "\n"))
end

local function check_swift()
  local swift = require "swift"
  local uses = swift.uses {
    ["Ground.swift"] = [[
      public struct Stone {
        struct Inner {}
        let text = "Door \(Hall.name) Door" // Door
        /* Door */ let raw = #"Door \(Door) \#(Roof())"#
      }
      func lay<Door: Stone>(_ door: Door) {}
    ]],
    ["Hall.swift"] = [[
      final class Hall<Roof> { var roof: Roof?; let stone: Stone }
      extension Stone { typealias Plain = Inner }
      enum Twice {}
    ]],
    ["Roof.swift"] = [[
      struct Roof { let hall: Hall<Int>; let inner = Hall.Inner.Stone }
      struct Door {}
      enum Twice {}
    ]],
    ["Other.swift"] = "let door = Door() as Twice",
  }
  local texts = {}
  for i, each in ipairs(uses) do
    texts[i] = ("%s:%d %s"):format(each.from, each.line, each.name)
  end
  expect(table.concat(texts, "\n"), [[
Ground.swift:3 Hall
Ground.swift:4 Roof
Hall.swift:1 Stone
Hall.swift:2 Stone
Other.swift:1 Door
Roof.swift:1 Hall
Roof.swift:1 Hall]])
end

local function check_folders()
  local plan = graph.parse_plan([[
folder Sources/House
language Swift
contract Key
floor ground
  Ground/ Loose.swift
floor roof
  Roof/ Empty/
]], "House")
  local paths = { "Ground/Deep/a.swift", "Loose.swift", "Roof/b.swift" }
  local function named(name)
    return { from = "Ground/Deep/a.swift", to = "Roof/b.swift", line = 7, name = name }
  end
  expect(table.concat(graph.check(plan, paths, { named "Key", named "Tile" }), "\n"),
    "House: Empty/ isn't there\n"
    .. "Sources/House/Ground/Deep/a.swift:7: 'Tile' is of Roof/b.swift, "
    .. "on the floor 'roof' above the floor 'ground'")
end

return function()
  check_graph()
  check_folders()
  check_c()
  check_swift()
end
