internal import FlowEngine
internal import FlowJournal
@_spi(Scripting) internal import LuaVM

/// Values of a script as bytes for a store: tables are kept as copies, like those that go to workers.
final class ScriptValues: KeptValues {
  // Safe: the host holds this, and nothing of it is called after the host is closed.
  private unowned let host: ScriptHost

  init(_ host: ScriptHost) {
    self.host = host
  }

  func encode(_ value: FlowValue) throws -> [UInt8] {
    if case .opaque = value {
    } else if let copy = value.plainCopy() {
      return PlainValueCodec.encode(copy)
    }
    let buffer = EncodedBuffer()
    do {
      try host.vm.encode(try host.luaValue(value), into: buffer)
    } catch let error as EncodeError {
      let part = error.path.isEmpty ? "it" : "its field '\(error.path)'"
      throw FlowError(.error, ByteString("\(part) is \(error.noun)"))
    }
    return buffer.bytes
  }

  func decode(_ bytes: [UInt8]) throws -> FlowValue {
    FlowValue(try host.vm.decode(EncodedBuffer(bytes)).value)
  }
}
