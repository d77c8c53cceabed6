// swift-tools-version: 6.2
import PackageDescription

/// Whether warnings are errors: where this package is built for itself, by its scripts. Another package may use it by
/// its path, with a compiler that warns of more.
let refusesWarnings = Context.environment["FLOWLUA_STRICT"] != nil

/// Every Swift target: the Swift 6 language mode.
let strictTests: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (refusesWarnings ? [.treatAllWarnings(as: .error)] : [])

/// Those of the sources. `scripts/sanitize` lets the sanitizer see what ships, and doesn't optimise the tests.
let strict: [SwiftSetting] =
  strictTests
  + (Context.environment["FLOWLUA_OPTIMIZED"] != nil ? [.unsafeFlags(["-O"])] : [])

/// For targets whose async code runs where it is called: on the thread of a loop.
let onLoop: [SwiftSetting] = [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]

let strictC: [CSetting] =
  [.define("_GNU_SOURCE")] + (refusesWarnings ? [.treatAllWarnings(as: .error)] : [])

/// The folder with liblua as an object, with which the release program is linked; scripts/lib/liblua.sh makes it and
/// says why. Nil for the shared library.
let liblua = Context.environment["FLOWLUA_LIBLUA"].map { folder in
  [
    "-Xlinker", "\(folder)/liblua.o", "-Xlinker",
    "--dynamic-list=\(Context.packageDirectory)/scripts/link/lua.symbols",
  ]
}

let package = Package(
  name: "flowlua",
  products: [
    .library(name: "FlowLoop", targets: ["FlowLoop"]),
    .library(name: "FlowEngine", targets: ["FlowEngine"]),
    .library(name: "FlowHTTP", targets: ["FlowHTTP"]),
    .library(name: "LuaVM", targets: ["LuaVM"]),
    .library(name: "FlowScripting", targets: ["FlowScripting"]),
    .library(name: "FlowNodes", targets: ["FlowNodes"]),
    .executable(name: "flowlua", targets: ["FlowLuaCLI"]),
  ],
  targets: [
    // A module map of Debian's `liblua5.4`.
    .systemLibrary(
      name: "CLua",
      pkgConfig: "lua5.4",
      providers: [.apt(["liblua5.4-dev"])]),
    // Calls of the system that Swift can't import or make.
    .target(name: "CFlowSystem", cSettings: strictC),
    // Trampolines, protected calls, coroutines: everything that concerns `longjmp`.
    .target(
      name: "CFlowLua", dependencies: ["CLua", "CFlowSystem"], cSettings: strictC,
      cxxSettings: refusesWarnings ? [.treatAllWarnings(as: .error)] : []),
    // libcurl, opened at the first request: its functions and callbacks for Swift.
    .target(name: "CCurl", dependencies: ["CFlowSystem"], cSettings: strictC),
    // SQLite, opened at the first kept run: its functions for Swift.
    .target(name: "CSQLite", dependencies: ["CFlowSystem"], cSettings: strictC),
    // libnats, opened at the first connection: its functions for Swift.
    .target(name: "CNats", dependencies: ["CFlowSystem"], cSettings: strictC),
    // Strings of bytes: the one text type of all other targets.
    .target(name: "FlowBytes", swiftSettings: strict),
    // The platform: the C library, and what is Linux's.
    .target(name: "FlowSystem", dependencies: ["FlowBytes", "CFlowSystem"], swiftSettings: strict),
    // Clock, event loop, helper threads, files, child processes; knows no op, value or task.
    .target(name: "FlowLoop", dependencies: ["FlowSystem"], swiftSettings: strict),
    // Values, tasks, ops, flows, groups, machines, the event log; knows no Lua.
    .target(name: "FlowEngine", dependencies: ["FlowLoop"], swiftSettings: strict),
    // HTTP requests as tasks and ops, by libcurl on the event loop; knows no Lua.
    .target(name: "FlowHTTP", dependencies: ["FlowEngine", "CCurl"], swiftSettings: strict),
    // Kept runs: what their ops did, in a store that other processes continue from; knows no Lua.
    .target(
      name: "FlowJournal", dependencies: ["FlowEngine", "CSQLite"], swiftSettings: strict),
    // Servers of NATS on the event loop: messages, streams, objects; knows no Lua.
    .target(
      name: "FlowRemote", dependencies: ["FlowEngine", "CNats"], swiftSettings: strict + onLoop),
    // A safe wrapper of one Lua state; knows no flows.
    .target(
      name: "LuaVM", dependencies: ["FlowSystem", "CLua", "CFlowLua"], swiftSettings: strict),
    // Shows the engine to Lua, and runs ops written in Lua.
    .target(
      name: "FlowScripting",
      dependencies: ["FlowEngine", "FlowHTTP", "FlowJournal", "LuaVM"],
      // Editors read the annotations, browsers the page; the program has them within itself.
      resources: [
        .embedInCode("Help/flow.d.lua"), .embedInCode("Help/flow.csv.d.lua"),
        .embedInCode("Help/flow.fs.d.lua"), .embedInCode("Help/flow.http.d.lua"),
        .embedInCode("Help/flow.json.d.lua"), .embedInCode("Help/flow.testing.d.lua"),
        .embedInCode("Timeline/Page/timeline.html"), .embedInCode("Timeline/Page/timeline.css"),
        .embedInCode("Timeline/Page/spans.js"), .embedInCode("Timeline/Page/rows.js"),
        .embedInCode("Timeline/Page/chart.js"), .embedInCode("Timeline/Page/live.js"),
        .embedInCode("Timeline/Page/page.js"),
        .embedInCode("Testing/harness.lua"), .embedInCode("Testing/coverage.lua"),
      ],
      swiftSettings: strict),
    // Ops of scripts on other nodes, and the nodes: the place `remote` of ops.
    .target(
      name: "FlowNodes", dependencies: ["FlowScripting", "FlowJournal", "FlowRemote"],
      swiftSettings: strict + onLoop),
    // The program: arguments, sessions, exit status.
    .executableTarget(
      name: "FlowLuaCLI",
      dependencies: [
        "FlowNodes", "FlowScripting", "FlowHTTP", "FlowJournal", "LuaVM", "FlowEngine",
      ],
      // The files that `--init` writes, and the runner of tests.
      resources: [
        .embedInCode("Project/hello.lua"), .embedInCode("Project/hello_test.lua"),
        .embedInCode("Tests/runner.lua"), .embedInCode("Tests/reports.lua"),
      ],
      swiftSettings: strict,
      linkerSettings: [
        // A bare Lua host starts in 1.1 to 1.2 times the time of lua5.4 with these flags, in 1.8
        // times with `-static-stdlib` alone. Debug, test and sanitizer builds stay dynamic.
        .unsafeFlags(
          [
            // The linker of the toolchain: it folds functions with the same code into one (`--icf`), 0.4 MB, which
            // concerns the Swift ones, whose addresses nothing compares, and can leave sections out.
            "-use-ld=lld", "-Xlinker", "--icf=all",
            // No tables for exceptions, 1.9 MB: discard.ld says why.
            "-Xlinker", "--no-eh-frame-hdr",
            "-Xlinker", "--script=\(Context.packageDirectory)/scripts/link/discard.ld",
            // No shared Swift runtime.
            "-static-stdlib",
            // No shared libstdc++: `-static-stdlib` asks for `-lstdc++`, finds the empty linker
            // script in this folder, and the archive comes last, behind all that needs it.
            "-L", "\(Context.packageDirectory)/scripts/link",
            "-Xlinker", "-l:libstdc++.a",
            // Nor libgcc_s: only the C++ runtime needs its unwinder, and no exception crosses Lua.
            "-Xclang-linker", "-static-libgcc",
            // A fixed address: otherwise 20,000 relative relocations are done at each start. The C
            // library and all C modules are still placed at random.
            "-Xclang-linker", "-no-pie",
            // `-static-stdlib` exports every symbol. A function that a shared library calls and this program
            // defines (`lua_resume`, which thereby replaces liblua's own) is exported regardless.
            "-Xlinker", "--no-export-dynamic",
            // Without memory the program ends with a sentence, not by a signal: CFlowSystem/limits.c has what is called
            // in place of these functions.
            "-Xlinker", "--wrap=malloc", "-Xlinker", "--wrap=calloc", "-Xlinker", "--wrap=realloc",
            "-Xlinker", "--wrap=aligned_alloc", "-Xlinker", "--wrap=posix_memalign",
          ] + (liblua ?? []), .when(configuration: .release))
      ]),
    // A program that uses the engine alone: proof that it needs no Lua.
    .executableTarget(
      name: "EngineOnly",
      dependencies: ["FlowEngine"],
      path: "examples/engine-only",
      packageAccess: false,
      swiftSettings: strict),
    // A program that embeds scripts, and registers ops of its own.
    .executableTarget(
      name: "SwiftHost",
      dependencies: ["FlowScripting", "FlowEngine", "LuaVM"],
      path: "examples/swift-host",
      exclude: ["order.lua", "order.expected"],
      packageAccess: false,
      swiftSettings: strict),
    // A server of jobs in the form that another package has, which gets only the public API; its own Package.swift is
    // for readers who copy it.
    .executableTarget(
      name: "JobServer",
      dependencies: ["FlowScripting", "FlowEngine", "LuaVM"],
      path: "examples/job-server/Sources/JobServer",
      packageAccess: false,
      swiftSettings: strict),
    .testTarget(
      name: "JobServerTests", dependencies: ["JobServer", "FlowEngine"],
      path: "examples/job-server/Tests/JobServerTests",
      packageAccess: false,
      swiftSettings: strictTests),
    // A rules engine in the same form.
    .target(
      name: "Rules",
      dependencies: ["FlowScripting", "FlowEngine", "LuaVM"],
      path: "examples/rules/Sources/Rules",
      packageAccess: false,
      swiftSettings: strict),
    .testTarget(
      name: "RulesTests", dependencies: ["Rules", "FlowEngine"],
      path: "examples/rules/Tests/RulesTests",
      packageAccess: false,
      swiftSettings: strictTests),
    // For scripts/bench: the scripts' host without a bold mechanism, and calls, values and requests of Swift.
    .executableTarget(
      name: "BenchHost", dependencies: ["FlowScripting", "FlowEngine", "LuaVM"],
      path: "scripts/bench.d/host", swiftSettings: strict),
    .executableTarget(
      name: "BenchCalls", dependencies: ["LuaVM"], path: "scripts/bench.d/calls",
      swiftSettings: strict),
    .executableTarget(
      name: "BenchData", dependencies: ["FlowScripting", "FlowEngine", "LuaVM"],
      path: "scripts/bench.d/data", swiftSettings: strict),
    .testTarget(
      name: "FlowScriptingTests", dependencies: ["FlowScripting", "FlowEngine", "LuaVM"],
      swiftSettings: strictTests),
    .testTarget(
      name: "FlowNodesTests", dependencies: ["FlowNodes", "FlowScripting", "FlowRemote", "LuaVM"],
      swiftSettings: strictTests + onLoop),
    // Runs the release binary; it links nothing of the package.
    .testTarget(name: "CommandLineTests", swiftSettings: strictTests),
    .testTarget(
      name: "FlowLoopTests", dependencies: ["FlowLoop", "CFlowSystem"], swiftSettings: strictTests),
    .testTarget(name: "FlowEngineTests", dependencies: ["FlowEngine"], swiftSettings: strictTests),
    .testTarget(
      name: "FlowHTTPTests", dependencies: ["FlowHTTP", "CCurl"], swiftSettings: strictTests),
    .testTarget(
      name: "FlowJournalTests", dependencies: ["FlowJournal", "FlowSystem", "CSQLite"],
      swiftSettings: strictTests
    ),
    .testTarget(
      name: "FlowRemoteTests", dependencies: ["FlowRemote", "CNats"],
      swiftSettings: strictTests + onLoop),
    .testTarget(
      // Of its own, because the stand-ins of other packages have names that FlowEngine has, too.
      name: "EcosystemTests", dependencies: ["FlowEngine"], swiftSettings: strictTests),
    // Like a program of another package, it gets only the public API.
    .testTarget(
      name: "PublicAPITests", dependencies: ["FlowEngine"], packageAccess: false,
      swiftSettings: strictTests),
    .testTarget(name: "LuaVMTests", dependencies: ["LuaVM"], swiftSettings: strictTests),
  ],
  cLanguageStandard: .gnu11,
  // `<charconv>` converts floats; see json_numbers.h.
  cxxLanguageStandard: .cxx17
)
