// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "job-server",
  dependencies: [
    // In a package of your own: .package(path: "../flowlua").
    .package(name: "flowlua", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "JobServer",
      dependencies: [
        .product(name: "FlowEngine", package: "flowlua"),
        .product(name: "FlowScripting", package: "flowlua"),
        .product(name: "LuaVM", package: "flowlua"),
      ]),
    .testTarget(
      name: "JobServerTests",
      dependencies: ["JobServer", .product(name: "FlowEngine", package: "flowlua")]),
  ])
