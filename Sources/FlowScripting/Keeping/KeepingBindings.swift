@_spi(Scripting) internal import FlowEngine
internal import FlowJournal
@_spi(Scripting) internal import LuaVM

struct KeepingBindings {
  let host: ScriptHost

  /// Defines `flow.keep`: keeps all runs that start from now on.
  func install() {
    host.define("keep") { host, call in
      let arguments = Arguments(host, call, "keep")
      let options =
        arguments.isNil(1)
        ? nil : try arguments.options(1, known: ["store", "resume", "within", "trust_code"])
      let folder = try options?.string("store")
      let within = try options?.duration("within", orZero: false).map {
        ScriptKeeping.Age(
          seconds: Double($0.clampedNanoseconds) / 1e9, text: FlowValue.text(of: $0))
      }
      let trustsCode = try options?.boolean("trust_code") ?? false
      var resumption = ScriptKeeping.Resumption.none
      switch options?.value("resume") {
      case nil: break
      case .boolean(let flag)?: if flag { resumption = .latest }
      case .string(let id)?: resumption = .run(id)
      case let value?:
        let got = host.kindName(of: value)
        throw arguments.wrong(1, "field 'resume': boolean or string expected, got \(got)")
      }
      do {
        let keeping = try host.keepingOfScript(resuming: resumption)
        try keeping.adopt(folder: folder, trustsCode: trustsCode, within: within)
        keeping.keepsAll = true
      } catch let error as FlowError {
        throw host.usage(call, error.message)
      }
      return call.answer()
    }
  }
}

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
