internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The fields, other than the message, of a table with which a script fails, by `ctx:fail` or
/// `error`: a number, and the control of further attempts.
struct FailureFields {
  /// `code`, `retry` and `retry_after` unchanged, if present.
  let fields: [(ByteString, LuaValue)]

  init(_ table: LuaReference, _ host: ScriptHost) {
    let values = (try? host.vm.fields("code\0retry\0retry_after", of: table)) ?? []
    fields = zip(Self.names, values).filter { !$0.1.isNil }
  }

  /// In the order in which they are read.
  private static let names: [ByteString] = ["code", "retry", "retry_after"]

  /// Adopts the values that the engine understands: an integer, `false`, a number of seconds.
  func apply(to details: inout FlowError.Details) {
    details.code = nil
    details.isRetriable = nil
    details.retryAfter = nil
    for (name, value) in fields {
      switch (name, value) {
      case ("code", .integer(let number)): details.code = number
      case ("retry", .boolean(let mayRetry)): details.isRetriable = mayRetry
      case ("retry_after", .integer(let seconds)):
        details.retryAfter = Duration(clampingSeconds: Double(seconds))
      case ("retry_after", .number(let seconds)) where seconds.isFinite:
        details.retryAfter = Duration(clampingSeconds: seconds)
      default: break
      }
    }
  }
}

extension RequestFailure {
  /// The fields of a failed request, as scripts see them.
  func luaFields(_ vm: LuaVM) throws -> [(ByteString, LuaValue)] {
    switch self {
    case .response(let response):
      return [
        ("status", .integer(Int64(response.status))),
        ("headers", .reference(try vm.makeTable(fields: Self.headerFields(response.headers)))),
        ("body", .string(response.body)),
      ]
    case .connection(let phase, let sent):
      return [("phase", .string(ByteString(phase.rawValue))), ("sent", .boolean(sent))]
    }
  }

  /// Headers by their names in lower case; the values of equal names are joined by commas.
  static func headerFields(
    _ headers: [(name: ByteString, value: ByteString)]
  ) -> [(ByteString, LuaValue)] {
    // In place: a server can send thousands of lines with one name.
    var values: [ByteString: [UInt8]] = [:]
    for (name, value) in headers {
      let name = name.lowercased
      if values[name]?.append(contentsOf: [44, 32] + value.bytes) == nil {
        values[name] = value.bytes
      }
    }
    return values.sorted { $0.key < $1.key }.map { ($0.key, .string(ByteString($0.value))) }
  }
}

/// Engine errors that contain more than their tables: the error of Swift code, the end of a
/// program, or a failed request. Each is kept as long as its table.
final class KeptErrors: HostService {
  /// A table with weak keys: from error tables to errors.
  private var table: LuaReference?

  /// Stores an error, which must not reference its table.
  func keep(_ error: FlowError, of key: LuaReference, _ host: ScriptHost) throws {
    let table = try table ?? makeTable(host)
    self.table = table
    try host.vm.set(
      try host.vm.value(of: error, host.types.failure), at: .reference(key), in: table)
  }

  private func makeTable(_ host: ScriptHost) throws -> LuaReference {
    let metatable = try host.vm.makeTable(fields: [("__mode", "k")])
    return try host.vm.makeTable(metatable: metatable)
  }

  /// The error that was stored for a table.
  func error(of key: LuaReference, _ host: ScriptHost) -> FlowError? {
    guard let table, let value = try? host.vm.rawGet(.reference(key), in: table) else { return nil }
    return host.vm.object(in: value, host.types.failure)
  }
}
