package import FlowEngine
internal import FlowHTTP
internal import Glibc

/// What the spans of this process say about it: the resource of OpenTelemetry.
package struct TraceResource {
  /// Names and values.
  package let attributes: [(name: ByteString, value: ByteString)]

  /// Reads `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
  ///
  /// - Parameters:
  ///   - title: The name of the service when neither of them says it.
  ///   - environment: Returns the value of an environment variable.
  ///   - secrets: The texts that no name and no value shows.
  package init(
    title: ByteString, environment: (String) -> ByteString? = TraceResource.variable,
    hiding secrets: SecretTexts
  ) {
    var given: [(name: ByteString, value: ByteString)] = []
    for (name, value) in Self.pairs(environment("OTEL_RESOURCE_ATTRIBUTES") ?? "") {
      given.removeAll { $0.name == name }
      given.append((name, value))
    }
    if let service = environment("OTEL_SERVICE_NAME") {
      given.removeAll { $0.name == "service.name" }
      given.insert(("service.name", service), at: 0)
    }
    var host = [CChar](repeating: 0, count: 256)
    gethostname(&host, host.count - 1)
    let known: [(name: ByteString, value: ByteString)] = [
      ("service.name", title), ("telemetry.sdk.name", "flowlua"), ("telemetry.sdk.language", "lua"),
      ("host.name", ByteString(host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })),
    ]
    let added = known.filter { known in !given.contains { $0.name == known.name } }
    attributes = (given + added).map { (secrets.redacted($0.name), secrets.redacted($0.value)) }
  }

  /// The value of an environment variable; nil for an empty one, which means the same as none.
  package static func variable(_ name: String) -> ByteString? {
    guard let value = getenv(name) else { return nil }
    let text = ByteString(Array(UnsafeRawBufferPointer(start: value, count: strlen(value))))
    return text.bytes.isEmpty ? nil : text
  }

  /// Reads `name=value,name=value`, in which values are percent-encoded; pairs without a name are left out.
  package static func pairs(_ text: ByteString) -> [(name: ByteString, value: ByteString)] {
    text.bytes.split(separator: UInt8(ascii: ",")).compactMap { pair in
      guard let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
      let name = trimmed(pair[..<sign])
      return name.isEmpty
        ? nil : (ByteString(name), ByteString(trimmed(pair[(sign + 1)...])).percentDecoded)
    }
  }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> [UInt8] {
    Array(text.drop { $0 == 32 || $0 == 9 }.reversed().drop { $0 == 32 || $0 == 9 }.reversed())
  }
}
