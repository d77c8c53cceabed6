// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "rules",
  products: [.library(name: "Rules", targets: ["Rules"])],
  dependencies: [.package(name: "flowlua", path: "../..")],
  targets: [
    .target(
      name: "Rules",
      dependencies: [
        .product(name: "FlowEngine", package: "flowlua"),
        .product(name: "FlowScripting", package: "flowlua"),
        .product(name: "LuaVM", package: "flowlua"),
      ]),
    .testTarget(name: "RulesTests", dependencies: ["Rules"]),
  ])
