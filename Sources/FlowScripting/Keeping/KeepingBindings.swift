internal import FlowEngine
@_spi(Scripting) internal import LuaVM

extension ScriptHost {
  /// `flow.keep`: keeps all runs that start from now on.
  func installKeeping() {
    define("keep") { host, call in
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
      default: throw arguments.wrong(1, "field 'resume': boolean or string expected")
      }
      do {
        let keeping = try host.keepingOfScript(resuming: resumption)
        try keeping.adopt(folder: folder, trustsCode: trustsCode, within: within)
        keeping.keepsAll = true
      } catch let error as FlowError {
        throw host.usage(call, error.messageBytes.description)
      }
      return call.answer()
    }
  }
}
