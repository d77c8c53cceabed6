/// A failed item of a group: the engine's own record of it in `failures`.
package final class ItemFailure: OpaqueValue {
  /// The 0-based index of the item.
  package let index: Int
  /// The item that failed.
  package let input: FlowValue
  /// Why it failed.
  package let error: FlowError

  /// Makes the record of one failed item; `index` counts from 0.
  package init(index: Int, input: FlowValue, error: FlowError) {
    self.index = index
    self.input = input
    self.error = error
  }

  package var typeName: ByteString { "table" }

  package func logText(limit: Int) -> ByteString {
    let shown: ByteString =
      if case .opaque(let value) = input { value.logText(limit: limit) } else { input.logTextBytes }
    let text: ByteString =
      "{error = \(error.text), index = \(index + 1), input = \(shown)}"
    return text.truncated(to: limit)
  }

  package func matches(typeName: ByteString) -> Bool { typeName == "table" }

  package func listCount() -> Int? { nil }

  package func element(at index: Int) -> FlowValue { .null }

  package func plainCopy() -> PlainValue? {
    guard let input = input.plainCopy() else { return nil }
    let fields: [PlainValue.Entry] = [
      .init(key: .bytes("index"), value: .integer(Int64(index) + 1)),
      .init(key: .bytes("input"), value: input.root.shifted(by: 1)),
      .init(key: .bytes("error"), value: .bytes(error.messageBytes)),
    ]
    let table = PlainValue.Table(entries: fields)
    return PlainValue(.table(0), tables: [table] + input.tables.map { $0.shifted(by: 1) })
  }
}
