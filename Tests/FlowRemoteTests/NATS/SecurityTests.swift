import FlowEngine
import FlowRemote
import Testing

@Suite("The security of a connection to a NATS server")
struct SecurityTests {
  @Test("is TLS with a checked certificate")
  func certificate() throws {
    let folder = try Folders.makeTemporary()
    defer { try? FileRemoval.remove(folder, recursive: true, Cancellation()) }
    let (key, certificate) = (folder + "/key.pem", folder + "/certificate.pem")
    try TestServer.run([
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
      "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
      "-keyout", key.description, "-out", certificate.description,
    ])
    let server = try TestServer(
      hasJetStream: false,
      ["--tls", "--tlscert", certificate.description, "--tlskey", key.description])
    let loop = FlowEventLoop(clock: SystemClock())
    defer { loop.shutdown() }

    let unknown = try #require(try loop.connect("tls://localhost:\(server.port)").error)
    #expect(unknown.message.hasPrefix("tls://localhost:\(server.port): TLS failed: "))
    #expect(ByteString(unknown.message).bytes.place(of: "certificate") != nil, "\(unknown.message)")
  }
}
