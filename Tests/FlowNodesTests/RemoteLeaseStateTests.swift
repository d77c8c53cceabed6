import FlowEngine
import Testing

@testable import FlowNodes

@Suite("Where a job of another node is")
struct RemoteLeaseStateTests {
  typealias State = RemoteLeaseState

  private static func executing() -> State {
    var state = State(at: 100)
    state.begin(at: 200)
    return state
  }

  @Test("It waits, executes, and ends with a report that the server stores")
  func life() {
    var state = State(at: 100)
    #expect(state.isWaiting && !state.isExecuting && !state.movesFiles)
    state.begin(at: 200)
    #expect(state.isExecuting && state.began == 200)
    #expect(state.take(.other) == .report)
    #expect(state.take(.folder) == .keepFolder)
    state.send()
    #expect(state.isSending)
    #expect(state.stored(isLast: false) == .flush)
    #expect(!state.isSending && state.reports == 1)
    #expect(state.take(.succeeded) == .reportEnd)
    #expect(state.hasEnded && !state.isExecuting)
    state.send()
    #expect(state.stored(isLast: true) == .conclude)
  }

  @Test("After its end only folders that come too late matter")
  func afterTheEnd() {
    var state = Self.executing()
    _ = state.take(.failed)
    #expect(state.take(.folder) == .removeFolder)
    for event in [State.Event.other, .files, .succeeded, .failed] {
      #expect(state.take(event) == .nothing)
    }
    #expect(state.lose() == .nothing && state.stop() == .nothing)
    #expect(state.giveBack("it leaves") == .nothing && state.handBack("it leaves") == .nothing)
    #expect(!state.mayBeWithdrawn(waitingSince: 1000))
  }

  @Test("Files that it needs come first; a stop meanwhile fails it")
  func preparing() {
    var state = State(at: 100)
    state.prepare()
    #expect(state.movesFiles && !state.isWaiting)
    #expect(state.stop() == .fail)
    #expect(state.lose() == .reportEnd)
    // The files have come nevertheless.
    #expect(!state.prepared() && state.hasEnded)
    state = State(at: 100)
    state.prepare()
    #expect(state.prepared() && state.isWaiting)
    state.prepare()
    state.miss()
    #expect(state.hasEnded)
  }

  @Test("One that waits for the code of others of its message is stopped, and no worker gets it")
  func together() {
    var states = [State(at: 100), State(at: 100), State(at: 100)]
    for index in states.indices { states[index].prepare() }
    // The first one has its code, which no pool knows yet: the stop isn't a worker's.
    #expect(states[0].stop() == .fail)
    #expect(states[0].lose() == .reportEnd)
    // The script of the second one is gone.
    #expect(states[1].abandon() == .nothing)
    #expect(!states[0].prepared() && states[0].hasEnded)
    #expect(!states[1].prepared() && states[1].hasEnded)
    #expect(states[2].prepared() && states[2].isWaiting)
    #expect(states[2].stop() == .stop)
    // One that goes back meanwhile doesn't begin either.
    var state = State(at: 100)
    state.prepare()
    #expect(state.giveBack("it leaves") == .handBack("it leaves", forgets: true))
    #expect(!state.prepared() && state.hasEnded)
  }

  @Test("Files that it gives are sent after its success, not after a failure")
  func giving() {
    var state = Self.executing()
    #expect(state.take(.files) == .hold)
    #expect(state.take(.succeeded) == .sendFiles)
    #expect(state.movesFiles && !state.hasEnded && !state.isExecuting)
    #expect(state.stop() == .fail)
    state.sentFiles()
    #expect(state.hasEnded)
    state = Self.executing()
    _ = state.take(.files)
    #expect(state.take(.failed) == .reportEnd)
  }

  @Test("One that executes goes back after its stop, one that waits at once")
  func givingBack() {
    var state = State(at: 100)
    #expect(state.giveBack("it leaves") == .handBack("it leaves", forgets: true))
    #expect(state.hasEnded)
    state = Self.executing()
    #expect(state.giveBack("it leaves") == .stop)
    #expect(state.take(.other) == .report)
    #expect(state.take(.failed) == .handBack("it leaves", forgets: false))
    // The second call doesn't wait for its cleanups.
    state = Self.executing()
    _ = state.giveBack("it leaves")
    #expect(state.giveBack("at once") == .handBack("at once", forgets: false))
    // A success counts.
    state = Self.executing()
    _ = state.giveBack("it leaves")
    #expect(state.take(.succeeded) == .reportEnd)
    // One whose results may not be sent is a failure of its own, which no node executes again.
    state = Self.executing()
    _ = state.giveBack("it leaves")
    #expect(state.take(.refused) == .reportEnd)
    // The loss of its worker ends it as its stop does.
    state = Self.executing()
    _ = state.giveBack("it leaves")
    #expect(state.lose() == .handBack("it leaves", forgets: false))
  }

  @Test("It is withdrawn if it has waited since before a time")
  func withdrawn() {
    let state = State(at: 100)
    #expect(state.mayBeWithdrawn(waitingSince: 101) && !state.mayBeWithdrawn(waitingSince: 100))
  }

  @Test("An abandoned one is stopped if a worker has it")
  func abandoned() {
    var state = State(at: 100)
    #expect(state.abandon() == .nothing && state.hasEnded)
    state = Self.executing()
    #expect(state.abandon() == .stop && state.hasEnded)
    #expect(state.take(.failed) == .nothing)
  }

  @Test(
    "A report that isn't stored is sent again; one that the server has no room for six times isn't")
  func refused() {
    var state = Self.executing()
    _ = state.take(.succeeded)
    state.send()
    for _ in 1...10 { #expect(state.notStored(isRefused: false) == .sendAgain) }
    for _ in 1...5 { #expect(state.notStored(isRefused: true) == .sendAgain) }
    #expect(state.notStored(isRefused: true) == .refuse)
    // A small failure follows as the last report.
    #expect(state.isSending)
    #expect(state.notStored(isRefused: true) == .sendAgain)
    // One that executes is stopped, and its end is the next report.
    state = Self.executing()
    state.send()
    for _ in 1...5 { _ = state.notStored(isRefused: true) }
    #expect(state.notStored(isRefused: true) == .refuse && !state.isSending)
    // A report that is stored resets the count.
    state = Self.executing()
    for _ in 1...3 {
      for _ in 1...5 { #expect(state.notStored(isRefused: true) == .sendAgain) }
      _ = state.stored(isLast: false)
    }
  }
}
