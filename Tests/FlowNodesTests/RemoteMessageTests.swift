import FlowEngine
import LuaVM
import Testing

@testable import FlowNodes
@testable import FlowScripting

// Like a program that embeds this package: literals are strings.
typealias StringLiteralType = String
typealias ExtendedGraphemeClusterType = String
typealias UnicodeScalarType = String

@Suite("Messages between scripts and nodes")
struct RemoteMessageTests {
  private static let error = WireError(
    plain: FlowError(.error, "broken"), values: WireBatch(),
    fields: [("field", .integer(1)), ("other", .secret(.bytes("s")))],
    cause: .error(
      WireError(plain: .cancelled(), values: WireBatch(), fields: [], cause: .value(.boolean(true)))
    ))

  private static var job: RemoteJob {
    let data = WireBatch(
      values: [.number(1.5), .secret(.bytes("secret")), .table(0)], buffer: EncodedBuffer([1, 2]))
    return RemoteJob(
      number: 7, round: 2, code: "abc",
      settings: RemoteJob.Settings(
        gracePeriod: .seconds(1), cleanupGrace: .seconds(30), logsWaits: true,
        hasGlobalModule: false),
      arguments: WireBatch(values: [.null, .integer(-1)], buffer: nil),
      kind: .op(
        WorkerJob.OpPlace(
          name: "Op", index: 3, label: "cat", attempt: 2, lineage: 99,
          span: SpanOrigin(TraceContext(), place: .execution(5)), grace: .seconds(4), memory: 65536,
          endingError: error, visible: ["a", "b", "c", "d"], keys: ["a", "b", "c"], data: data)),
      files: files, identity: "op")
  }

  private static let files = RemoteJobFiles(
    needs: [
      RemoteJobFiles.Needed(
        key: "a",
        files: [
          RemoteNeededFile(path: "/data/x", content: .shared),
          RemoteNeededFile(
            path: "in/y",
            content: .object(hash: ByteString([UInt8](repeating: 97, count: 64)), size: 5)),
        ])
    ], gives: [WorkerDeclaration(name: "b", type: "file[]")],
    shared: RemoteSharedFolders(trusting: ["/data"]))

  private static let report = RemoteReport(
    number: 7, delivery: 513, lane: "gpu1/3", took: 1_000_000,
    news: [
      .event(.log("line"), age: 5), .event(.progress(done: 1, total: nil), age: 4),
      .event(.work(LoggedWork(.program, "ls -l", error: nil, status: 0)), age: 3),
      .event(.set("key", .table(0), WireBatch(values: [], buffer: EncodedBuffer([3]))), age: 2),
      .returned("reason"), .missing(["hash"]),
      .files(
        "key", .bytes("out/x"), WireBatch(),
        [RemoteGivenFile(path: "out/x", object: "result-1", digest: "SHA-256=x")]),
      .event(.ended(error, result: .bytes("r"), WireBatch()), age: 0),
    ])

  @Test("Messages that travel together come back as they were")
  func bundles() {
    let parts: [[UInt8]] = [Self.job.bytes, [], [1, 2, 3]]
    let bytes = RemoteProtocol.bundle(parts)
    #expect(RemoteProtocol.parts(of: bytes) == parts)
    #expect(RemoteProtocol.parts(of: RemoteProtocol.bundle([])) == [])
    #expect(RemoteProtocol.parts(of: bytes + [0]) == nil)
    for count in 0..<bytes.count {
      #expect(RemoteProtocol.parts(of: Array(bytes.prefix(count))) == nil)
    }
  }

  private static func report(_ place: UInt64, _ news: RemoteReport.News?) -> RemoteReport {
    RemoteReport(
      number: 1, delivery: 257, lane: "m1/1", news: news.map { [$0] } ?? [], place: place)
  }

  @Test("Reports about a hand-out count once each, in the order in which they were sent")
  func orderOfReports() {
    let line = RemoteReport.News.event(.log("line"), age: 0)
    var sequence = RemoteReportSequence()
    func taken(_ place: UInt64, _ news: RemoteReport.News?) -> [UInt64] {
      sequence.take(Self.report(place, news)).map(\.place)
    }
    #expect(taken(0, nil) == [])
    #expect(taken(2, line) == [])
    #expect(taken(1, line) == [])
    #expect(taken(2, line) == [])
    #expect(taken(0, line) == [0, 1, 2])
    #expect(taken(0, line) == [])
    #expect(taken(2, line) == [])
    #expect(taken(3, line) == [3])
    #expect(taken(9, .returned("the node leaves")) == [9])
    #expect(taken(9, .missing(["hash"])) == [9])
  }

  @Test("A question and its reply come back as they were")
  func questions() {
    let question = RemoteQuestion.jobs(
      [.init(number: 1, round: 2), .init(number: .max, round: 0)], wereLost: true)
    guard case .jobs(let jobs, wereLost: true)? = RemoteQuestion.read(question.bytes) else {
      Issue.record("no question")
      return
    }
    #expect(jobs.map(\.number) == [1, .max])
    #expect(jobs.map(\.round) == [2, 0])
    let reports = RemoteQuestion.reports([1, 2])
    guard case .reports([1, 2])? = RemoteQuestion.read(reports.bytes) else {
      Issue.record("no reports")
      return
    }
    #expect(RemoteQuestion.readReply(RemoteQuestion.reply([3, 4])) == [3, 4])
    #expect(RemoteQuestion.readReply([]) == nil)
    #expect(RemoteQuestion.read([1, 1, 1]) == nil)
  }

  @Test("A job comes back as it was")
  func jobs() throws {
    let read = try #require(RemoteJob.read(Self.job.bytes))
    #expect(
      read.number == 7 && read.round == 2 && read.code == "abc"
        && read.settings == Self.job.settings && read.identity == "op")
    guard case .op(let place) = read.kind else {
      Issue.record("no op")
      return
    }
    #expect(place.name == "Op" && place.index == 3 && place.label == "cat" && place.attempt == 2)
    #expect(place.lineage == 99 && place.grace == .seconds(4) && place.memory == 65536)
    #expect(place.visible == ["a", "b", "c", "d"] && place.keys == ["a", "b", "c"])
    #expect(place.data.values.count == 3 && place.data.buffer?.bytes == [1, 2])
    #expect(place.endingError?.fields.count == 2 && place.span?.place != nil)
    guard case .error(let cause)? = place.endingError?.cause else {
      Issue.record("no cause")
      return
    }
    #expect(cause.plain.kind == .cancelled)
    let files = read.files
    #expect(files.needs.map(\.key) == ["a"] && files.needs[0].files == Self.files.needs[0].files)
    #expect(files.shared == Self.files.shared && files.gives.map(\.name) == ["b"])
    #expect(files.type(ofGiven: "b")?.name == "file[]" && files.type(ofGiven: "a") == nil)
  }

  @Test("A file's hash is one, because it is a name in the cache")
  func hashes() throws {
    let file = RemoteNeededFile(path: "x", content: .object(hash: "../../x", size: 1))
    let job = RemoteJob(
      number: 1, round: 1, code: "", settings: Self.job.settings, arguments: WireBatch(),
      kind: .call(.values, span: nil),
      files: RemoteJobFiles(needs: [RemoteJobFiles.Needed(key: "a", files: [file])]))
    #expect(RemoteJob.read(job.bytes) == nil)
  }

  @Test("Shared folders contain what is at or below them")
  func sharedFolders() throws {
    var shared = RemoteSharedFolders()
    try shared.add("/data")
    try shared.add("/net/a/")
    for path in ["/data", "/data/", "/data/x", "//data/./x", "/net/a/b/c"] as [ByteString] {
      #expect(shared.contains(path), "\(path)")
    }
    for path in ["data/x", "/database", "/", "", "/net", "/data/../x", "/data/x\0"] as [ByteString]
    {
      #expect(!shared.contains(path), "\(path)")
    }
    for path in ["", "data", "/data/..", "/a/../b"] as [ByteString] {
      #expect(throws: FlowError.self) { try shared.add(path) }
    }
  }

  @Test("Names of files are the last parts of paths")
  func fileNames() {
    #expect(
      ("a/b.txt" as ByteString).validFileName == "b.txt" && ("b" as ByteString).validFileName == "b"
    )
    for path in ["", "a/", "..", "a/..", "a/.", "a\0"] as [ByteString] {
      #expect(path.validFileName == nil, "\(path)")
    }
    #expect(("a/b/c" as ByteString).folderName == "a/b" && ("c" as ByteString).folderName == nil)
  }

  @Test("A report comes back as it was, and says whether it is the last one")
  func reports() throws {
    let read = try #require(RemoteReport.read(Self.report.bytes))
    #expect(
      read.number == 7 && read.delivery == 513 && read.lane == "gpu1/3" && read.news.count == 8)
    #expect(read.isLast)
    #expect(
      !RemoteReport(number: 1, delivery: 1, lane: "", news: [.event(.log(""), age: 0)]).isLast)
    #expect(RemoteReport(number: 1, delivery: 1, lane: "", news: [.returned("")]).isLast)
    guard case .event(.work(let work), let age) = read.news[2] else {
      Issue.record("no work")
      return
    }
    guard case .files(_, _, _, let files) = read.news[6] else {
      Issue.record("no files")
      return
    }
    #expect(files == [RemoteGivenFile(path: "out/x", object: "result-1", digest: "SHA-256=x")])
    #expect(work.subject == "ls -l" && work.status == 0 && age == 3)
  }

  @Test("Bytes that are cut, longer, or of another version are refused; others never trap")
  func garbage() {
    let stop = RemoteStop(number: 1, delivery: .max, error: Self.error).bytes
    // A part of one kind of message may be one of another kind, which has its own subject.
    let readers: [([UInt8], ([UInt8]) -> Bool)] = [
      (Self.job.bytes, { RemoteJob.read($0) != nil }),
      (Self.report.bytes, { RemoteReport.read($0) != nil }), (stop, { RemoteStop.read($0) != nil }),
    ]
    for (bytes, isMessage) in readers {
      #expect(isMessage(bytes))
      for count in 0..<bytes.count {
        let cut = Array(bytes[..<count])
        #expect(!isMessage(cut))
      }
      let other = [RemoteProtocol.version + 1] + bytes.dropFirst()
      #expect(RemoteJob.read(other) == nil && RemoteReport.read(other) == nil)
      #expect(RemoteJob.read(bytes + [0]) == nil && RemoteReport.read(bytes + [0]) == nil)
      // Bytes that were changed may still be a message.
      var random = SystemRandomNumberGenerator()
      for _ in 0..<2000 {
        var changed = bytes
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          changed[Int.random(in: 1..<changed.count, using: &random)] = .random(
            in: 0 ... .max, using: &random)
        }
        _ = RemoteJob.read(changed)
        _ = RemoteReport.read(changed)
        _ = RemoteStop.read(changed)
        _ = RemoteCode.read(changed)
        _ = RemoteNodeInfo.read(changed)
      }
    }
  }

  @Test("Outcomes that a function gets come back as they were, also without an error")
  func calls() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    let error = WireError(FlowError(.network, "gone"), from: host)
    func read(_ kind: WorkerJob.Kind) -> WorkerJob.Kind? {
      kind.formBytes.withUnsafeBytes { WorkerJob.Kind.decode($0) }
    }
    guard case .call(.values, span: nil)? = read(.call(.values, span: nil)),
      case .call(.task(nil), span: nil)? = read(.call(.task(nil), span: nil)),
      case .call(.task(let failure?), span: nil)? = read(.call(.task(error), span: nil)),
      case .call(.error(let alone), span: let span?)? = read(
        .call(.error(error), span: SpanOrigin(TraceContext(), place: .items(run: "r", scope: 3))))
    else {
      Issue.record("another outcome")
      return
    }
    #expect(failure.plain.message == "gone" && alone.plain.kind == .network)
    guard case .items(run: "r", scope: 3)? = span.place else {
      Issue.record("another place")
      return
    }
  }

  @Test("Errors and secrets that contain each other without end are refused")
  func nesting() {
    var writer = ByteWriter()
    writer.add(byte: RemoteProtocol.version)
    writer.add(1 as UInt64)
    writer.add(1 as UInt64)
    for _ in 0..<100_000 {
      writer.add(FlowError(.error, ""))
      writer.add(WireBatch())
      writer.add(count: 0)
      writer.add(true)
      writer.add(false)
    }
    #expect(RemoteStop.read(writer.bytes) == nil)
    func report(_ value: WireValue) -> RemoteReport {
      RemoteReport(
        number: 1, delivery: 1, lane: "", news: [.event(.set("key", value, WireBatch()), age: 0)])
    }
    #expect(RemoteReport.read(report(.secret(.null)).bytes) != nil)
    #expect(RemoteReport.read(report(.secret(.secret(.null))).bytes) == nil)
    // The value, and before the batch.
    let start = report(.null).bytes.dropLast(3)
    let secrets = [UInt8](repeating: ValueTag.secret.rawValue, count: 1_000_000)
    #expect(RemoteReport.read(start + secrets) == nil)
  }

  @Test("A node's tags cover those of an op, and it looks for work of each of their sets")
  func tags() throws {
    let node = try RemoteTags("gpu, big gpu")
    #expect(
      node.words == ["big", "gpu"] && node.token == "big+gpu" && node.text == "big gpu")
    #expect(Set(node.subsets.map(\.token)) == ["+any", "big", "gpu", "big+gpu"])
    #expect(node.covers(RemoteTags()))
    let (gpu, cpu) = (try RemoteTags("gpu"), try RemoteTags("cpu"))
    #expect(node.covers(gpu))
    #expect(!node.covers(cpu))
    #expect(!RemoteTags().covers(node))
    let any = try RemoteTags("any")
    #expect(any.token != RemoteTags().token)
    for wrong in ["a.b", "a*", "ü", "a+b", String(repeating: "x", count: 33), "1 2 3 4 5"] {
      #expect(throws: FlowError.self) { try RemoteTags(ByteString(wrong)) }
    }
  }
}
