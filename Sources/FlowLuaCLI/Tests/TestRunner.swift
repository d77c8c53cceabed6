internal import FlowEngine
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// Executes the tests of files, each in a process of its own: `--test`. The work is done by `runner.lua`.
struct TestRunner {
  /// The function that executes all and ends the process.
  ///
  /// - Throws: A `LuaError` when memory runs out.
  static func makeMain(_ arguments: CommandLineArguments, _ vm: LuaVM) throws -> LuaReference {
    let options = arguments.options.tests ?? TestOptions()
    let program = executablePath ?? arguments.program
    let cores = Int64(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let reports = try vm.load(
      ByteString(PackageResources.reports_lua), chunkName: "=flowlua --test")
    var fields: [(ByteString, LuaValue)] = [
      (
        "command",
        .reference(try vm.makeTable(values: ([program] + options.passed).map { .string($0) }))
      ),
      ("paths", .reference(try vm.makeTable(values: options.paths.map { .string($0) }))),
      ("jobs", .integer(options.jobs.map { Int64($0) } ?? max(1, cores))),
      ("fail_fast", .boolean(options.failsFast)), ("update", .boolean(options.updates)),
      ("coverage", .boolean(options.covers)),
      ("is_terminal", .boolean(isatty(STDOUT_FILENO) != 0)),
      ("shuffles", .boolean(options.seed != nil || options.repetitions != nil)),
      ("repetitions", .integer(Int64(options.repetitions ?? 1))),
      ("seed", .integer(options.seed ?? Int64.random(in: 1...999_999_999))),
      ("program", .string(arguments.program)),
      ("reports", .reference(reports)),
    ]
    if let time = options.time { fields.append(("time", .number(time))) }
    if let grace = arguments.options.grace { fields.append(("grace", .number(grace))) }
    if let filter = options.filter { fields.append(("filter", .string(filter))) }
    if let junit = options.junit { fields.append(("junit", .string(junit))) }
    let runner = try vm.load(ByteString(PackageResources.runner_lua), chunkName: "=flowlua --test")
    guard
      case .reference(let main)? = try vm.call(
        runner, [.reference(try vm.makeTable(fields: fields))]
      ).first
    else { return runner }
    return main
  }
}
