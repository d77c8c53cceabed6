package import FlowEngine
internal import FlowRemote
@_spi(Scripting) internal import LuaVM

/// The machines that have been heard of lately.
package final class RemoteMachines {
  struct Machine {
    let info: RemoteMachineInfo
    let tags: RemoteTags
    /// On the system's clock.
    var heard: Int64
  }

  private var byID: [ByteString: Machine] = [:]
  /// Called once for each machine that can't execute ops of this program.
  var onMismatch: ((RemoteMachineInfo) -> Void)?

  /// How often a machine says that it is there.
  static let interval = Duration.seconds(2)
  /// A machine that hasn't been heard for so many nanoseconds is gone.
  static let silence: Int64 = 7_000_000_000

  /// Takes what a machine says of itself.
  func note(_ bytes: [UInt8]) {
    guard let info = RemoteMachineInfo.read(bytes) else { return }
    if info.isLeaving {
      byID[info.id] = nil
      return
    }
    let isNew = byID[info.id] == nil
    byID[info.id] = Machine(
      info: info, tags: (try? RemoteTags(info.tags)) ?? RemoteTags(), heard: LuaVM.monotonicTime)
    if isNew, !isCompatible(info) { onMismatch?(info) }
  }

  private func isCompatible(_ info: RemoteMachineInfo) -> Bool {
    info.compatibility == RemoteProtocol.compatibility
  }

  /// Forgets the machines that are gone.
  func forget(before now: Int64) {
    byID = byID.filter { now - $0.value.heard < Self.silence }
  }

  /// Those that can execute ops of this program.
  var all: [Machine] { byID.values.filter { isCompatible($0.info) } }

  /// Those that can't.
  var mismatches: [RemoteMachineInfo] {
    byID.values.map(\.info).filter { !isCompatible($0) }.sorted { $0.name < $1.name }
  }

  /// Whether a machine with a name is there.
  func isThere(_ name: ByteString) -> Bool { byID.values.contains { $0.info.name == name } }
}

extension RemoteMachines {
  /// The reply of a machine.
  package struct Answer {
    package let info: RemoteMachineInfo
    /// The time from the question to the answer.
    package let delay: Duration
    package var isCompatible: Bool {
      info.compatibility == RemoteProtocol.compatibility
    }
  }

  /// Asks which machines are there, and waits a second for their answers.
  package static func ask(
    _ settings: RemoteSettings, on loop: EventLoop,
    then: @escaping (Result<[Answer], FlowError>) -> Void
  ) {
    RemoteQueue.open(
      settings.servers, compatibility: RemoteProtocol.compatibility, on: loop
    ) { result in
      let queue: RemoteQueue
      switch result {
      case .failure(let error): return then(.failure(error))
      case .success(let open): queue = open
      }
      let answers = Answers()
      let began = LuaVM.monotonicTime
      let inbox = "_INBOX.\(UInt64.random(in: 0 ... .max).hexadecimal)" as ByteString
      do throws(FlowError) {
        try queue.connection.subscribe(inbox) { message in
          guard let info = RemoteMachineInfo.read(message.data.bytes) else { return }
          answers.list.append(
            Answer(info: info, delay: .nanoseconds(LuaVM.monotonicTime - began)))
        }
        try queue.connection.publish("flowlua.who", "", reply: inbox)
      } catch {
        queue.close()
        return then(.failure(error))
      }
      _ = loop.scheduleOutside(after: .seconds(1)) {
        queue.close()
        then(.success(answers.list.sorted { $0.info.name < $1.info.name }))
      }
    }
  }

  private final class Answers {
    var list: [Answer] = []
  }
}
