internal import FlowEngine

/// The question about an op with `effect = "once"` that may have had its effect: a wait for a message of the op's name, which
/// pauses the run as any other wait for a message does.
final class EffectQuestion: KeptReading, TaskObserver {
  /// The name of the wait: the same in each process, until the op begins again or has another content.
  let name: ByteString
  private let wait: MessageWait
  /// Called at the end, with the answer or with the reason why there is none.
  private let ended: (Result<Keeper.Settlement, FlowError>) -> Void
  private var then: (() -> Void)?
  /// Why there is no answer.
  private(set) var problem: FlowError?

  init(
    _ request: MessageRequest, in box: MessageBox, of work: KeptWork,
    ended: @escaping (Result<Keeper.Settlement, FlowError>) -> Void
  ) {
    name = request.wait
    self.ended = ended
    wait = MessageWait(request, in: box, on: work.loop, pausing: work.pause) { _ in }
  }

  func begin(then: @escaping () -> Void) {
    self.then = then
    wait.markObserved()
    wait.observe(self)
    wait.start()
  }

  func cancel() { wait.cancel() }

  func run() {
    guard let then = then.take() else { return }
    if case .bytes(let word)? = wait.result,
      let answer = Keeper.Settlement(rawValue: word.description)
    {
      ended(.success(answer))
    } else {
      let error = wait.error ?? .cancelled()
      problem = error
      ended(.failure(error))
    }
    then()
  }
}

extension Keeper {
  /// Pauses the op until somebody has said what became of the execution that a record says to be in doubt; no other op takes
  /// the record meanwhile. Nothing is undone, and what doesn't need the op is executed. If a value that it sets is lost, it
  /// can't count as done.
  func ask(
    _ work: KeptWork, _ index: Int, _ record: OpRecord, _ why: ByteString, lost: ByteString?
  ) throws -> KeepingDecision {
    guard let messageBox else { return .refuse(FlowError(.error, why)) }
    let words: [Settlement] = lost == nil ? Settlement.allCases : [.again, .fail]
    let shown = words.map { ByteString($0.rawValue) }
    let choices = shown.dropLast().reduce("") { $0.isEmpty ? $1 : "\($0), \($1)" }
    let doubt = lost.map { "\(why), and <\($0)>, which it sets, isn't known" as ByteString } ?? why
    let name = work.loop.secrets.redacted(work.names().shown)
    let request = MessageRequest(
      name: earlier.hasSeveralPlaces(name, record) ? record.path : name,
      wait: question(index, record),
      runs: work.runs, type: FlowValueType.any.limited(to: shown.map { .bytes($0) }),
      ask: "[\(record.path)] \(doubt): \(choices) or \(shown.last ?? "")?", timeout: nil)
    earlier.take(index)
    return .later(
      EffectQuestion(request, in: messageBox, of: work) { [weak self] answer in
        guard let self else { return }
        earlier.release(index)
        guard case .success(let answer) = answer else { return }
        answers[request.wait] = answer
        (messageBox.store as? KeptMessages)?.noteAnswer(request, isFinal: answer != .fail)
      })
  }

  /// The name of the question about a record: another one as soon as the op begins again, or has another content.
  func question(_ index: Int, _ record: OpRecord) -> ByteString {
    let content = OpContent(code: record.code, inputs: record.inputs)
    let known = earlier.records[index]
    let digest = content.code.followed(by: content.inputs).description
    return "\(known.key) \(known.began.bitPattern) \(digest)"
  }
}
