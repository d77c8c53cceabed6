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
      name: "FlowScripting", dependencies: ["FlowEngine", "LuaVM"], swiftSettings: strict),
    .executableTarget(
      name: "FlowLuaCLI",
      dependencies: ["FlowScripting", "LuaVM"],
      swiftSettings: strict,
      linkerSettings: [
        // The shipped binary: no shared Swift runtime and no shared libstdc++ to load, which halves
        // the start-up. Tests and sanitizer builds are debug builds and stay dynamic.
        .unsafeFlags(["-static-stdlib", "-Xlinker", "--as-needed", "-Xlinker", "-l:libstdc++.a"], .when(configuration: .release))
      ]),
    // A program that uses the engine alone: proof that it needs no Lua.
    .executableTarget(
      name: "EngineOnly",
      dependencies: ["FlowEngine"],
      path: "examples/engine-only",
      swiftSettings: strict),
    .testTarget(name: "LuaVMTests", dependencies: ["LuaVM"], swiftSettings: strict),
  ],
  cLanguageStandard: .gnu11
)
