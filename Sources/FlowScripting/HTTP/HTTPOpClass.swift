internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// `flow.ops.HTTPOp { url = "https://…/{name}", into = "page" }`.
extension ScriptHost {
  func registerHTTPOp() {
    registerDescribed(
      OpClass("HTTPOp", doc: HTTPOp.docText) {
        [unowned self] arguments in
        let (reader, request, key) = try HTTPRequestReader.op(arguments)
        do {
          return try HTTPOp(
            request, intoBytes: key, requester: ObjectIdentifier(self),
            showsProgress: reader.reportsProgress,
            makeKey: reader.makesKey
              ? { context in IdempotencyKeys.make(for: context) } : nil
          ) {
            [unowned self] response in
            try value(ofBody: response)
          }
        } catch let misuse as HTTPMisuse {
          throw reader.wrong(misuse)
        }
      })
  }

  /// The value of a body: JSON as a table, everything else as bytes.
  private func value(ofBody response: HTTPResponse) throws -> FlowValue {
    let type = response.header("content-type")?.lowercased() ?? ""
    let essence = type.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != 32 }
    guard
      essence.elementsEqual("application/json".utf8)
        || essence.starts(with: "application/".utf8)
          && essence.suffix(5).elementsEqual("+json".utf8)
    else { return .bytes(response.body) }
    do {
      return FlowValue(try vm.decodeJSON(response.body))
    } catch let error as JSONTextError {
      let place = HTTPTask.shown(response.urlBytes)
      throw FlowError(.error, "'\(place)': \(error.message)")
    }
  }
}
