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

  @Test("reports subjects that the user may not use")
  func permissions() throws {
    let folder = try Folders.makeTemporary()
    defer { try? FileRemoval.remove(folder, recursive: true, Cancellation()) }
    let settings = folder + "/server.conf"
    try Files.write(
      "authorization { users = [ { user: u, password: p, permissions: { publish: \"a\" } } ] }\n",
      to: settings, Cancellation())
    let server = try TestServer(hasJetStream: false, ["-c", settings.description])
    let loop = FlowEventLoop(clock: SystemClock())
    defer { loop.shutdown() }
    let connection = try loop.connect("nats://u:p@127.0.0.1:\(server.port)").get()
    var errors: [FlowError] = []
    connection.onError = { errors.append($0) }
    try connection.publish("b", "x")
    loop.wait { errors.count == 1 }
    let text = ByteString(errors[0].message)
    #expect(text.bytes.place(of: "Permissions Violation") != nil, "\(text)")
    #expect(connection.isConnected)
    connection.close()
  }
}
