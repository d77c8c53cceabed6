// swift-tools-version: 6.2
import PackageDescription

/// Every Swift target: the Swift 6 language mode, and no warning passes.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let strictC: [CSetting] = [
  .define("_GNU_SOURCE"),
  .treatAllWarnings(as: .error),
]

let package = Package(
  name: "flowlua",
  products: [
    .library(name: "FlowEngine", targets: ["FlowEngine"]),
    .library(name: "LuaVM", targets: ["LuaVM"]),
    .library(name: "FlowScripting", targets: ["FlowScripting"]),
    .executable(name: "flowlua", targets: ["FlowLuaCLI"]),
  ],
  targets: [
    .systemLibrary(
      name: "CLua",
      pkgConfig: "lua5.4",
      providers: [.apt(["liblua5.4-dev"])]),
    .target(name: "CFlowSystem", cSettings: strictC),
    .target(name: "CFlowLua", dependencies: ["CLua"], cSettings: strictC),
    .target(name: "FlowEngine", dependencies: ["CFlowSystem"], swiftSettings: strict),
    .target(name: "LuaVM", dependencies: ["CLua", "CFlowLua"], swiftSettings: strict),
    .target(
      name: "FlowScripting",
      dependencies: ["FlowEngine", "LuaVM"],
      // Editors read them; the program has them from Annotations.swift, which scripts/docs makes.
      exclude: ["Help/flow.d.lua", "Help/flow.testing.d.lua"],
      swiftSettings: strict),
    .executableTarget(
      name: "FlowLuaCLI",
      dependencies: ["FlowScripting", "LuaVM", "FlowEngine", "CFlowSystem"],
      swiftSettings: strict,
      linkerSettings: [
        // A bare Lua host starts in 1.1 to 1.2 times the time of lua5.4 with these flags, in 1.8
        // times with `-static-stdlib` alone. Debug, test and sanitizer builds stay dynamic.
        .unsafeFlags(
          [
            // No shared Swift runtime.
            "-static-stdlib",
            // No shared libstdc++: `-static-stdlib` asks for `-lstdc++`, finds the empty linker
            // script in this folder, and the archive comes last, behind all that needs it.
            "-L", "\(Context.packageDirectory)/scripts/link",
            "-Xlinker", "-l:libstdc++.a",
            // Nor libgcc_s: only the C++ runtime needs its unwinder, and no exception crosses Lua.
            "-Xclang-linker", "-static-libgcc",
            // A fixed address: otherwise 20,000 relative relocations are done at each start. Lua's
            // library, the C library and all C modules are still placed at random.
            "-Xclang-linker", "-no-pie",
            // `-static-stdlib` exports every symbol. What a shared library calls and this program
            // defines (`lua_resume`, which thereby replaces liblua's own) is exported regardless.
            "-Xlinker", "--no-export-dynamic",
            // What Swift can't allocate ends the program with a sentence, not by SIGABRT:
            // CFlowSystem/memory.c has what is called in place of this function of the runtime.
            "-Xlinker", "--wrap=_ZN5swift28swift_abortAllocationFailureEmm",
          ], .when(configuration: .release))
      ]),
    // A program that uses the engine alone: proof that it needs no Lua.
    .executableTarget(
      name: "EngineOnly",
      dependencies: ["FlowEngine"],
      path: "examples/engine-only",
      swiftSettings: strict),
    // A program that embeds scripts, and registers ops of its own.
    .executableTarget(
      name: "SwiftHost",
      dependencies: ["FlowScripting", "FlowEngine", "LuaVM"],
      path: "examples/swift-host",
      exclude: ["order.lua", "order.expected"],
      swiftSettings: strict),
    .testTarget(
      name: "FlowScriptingTests", dependencies: ["FlowScripting", "FlowEngine", "LuaVM"],
      swiftSettings: strict),
    // Runs the release binary; it links nothing of the package.
    .testTarget(name: "CommandLineTests", swiftSettings: strict),
    .testTarget(name: "FlowEngineTests", dependencies: ["FlowEngine"], swiftSettings: strict),
    .testTarget(name: "LuaVMTests", dependencies: ["LuaVM"], swiftSettings: strict),
  ],
  cLanguageStandard: .gnu11
)
