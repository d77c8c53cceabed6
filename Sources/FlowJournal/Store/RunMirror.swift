package import FlowEngine

/// Where the runs of a script are kept besides the store, so that another computer can continue them.
package struct RunMirror: Sendable {
  /// The script's name on all machines.
  package let script: ByteString
  /// Connects to the server; blocks.
  package let connect: @Sendable () throws(FlowError) -> any MirrorConnection

  package init(
    script: ByteString, connect: @escaping @Sendable () throws(FlowError) -> any MirrorConnection
  ) {
    self.script = script
    self.connect = connect
  }
}

/// A message about a run, with its number: later messages of a run have larger ones.
package struct MirroredBytes: Sendable {
  package let sequence: UInt64
  /// nil for a message that can't be read, because it is sealed with another key, or damaged.
  package let bytes: [UInt8]?

  package init(sequence: UInt64, bytes: [UInt8]?) {
    self.sequence = sequence
    self.bytes = bytes
  }
}

/// The name of a run on a server.
package struct MirroredRun: Hashable, Sendable {
  package let script: ByteString
  package let id: ByteString

  package init(script: ByteString, id: ByteString) {
    self.script = script
    self.id = id
  }
}

/// The outcome of a message that was published.
package enum MirrorReply: Sendable {
  /// The server has it, with this number.
  case stored(UInt64)
  /// The last message of the run isn't the expected one, but this; nil: there is none.
  case outdated(MirroredBytes?)
}

/// A connection to a server that keeps runs. Confined to the thread that has made it; its calls block.
package protocol MirrorConnection: AnyObject {
  /// The server, for people.
  var place: ByteString { get }

  /// The key of the digests in all runs of the server; `own` if there is none yet.
  func hashKey(orElse own: [UInt8]) throws(FlowError) -> [UInt8]

  /// Publishes a message of a run whose last message has the number `last`, 0 for none.
  ///
  /// - Parameters:
  ///   - bytes: The message.
  ///   - run: The run.
  ///   - last: The number of the run's last message.
  ///   - isLast: Whether the process is about to end, so that little time is left for a server that is away. Called
  ///     meanwhile.
  /// - Returns: The outcome.
  /// - Throws: A `FlowError` when the server is away for too long, or can't store it.
  func publish(
    _ bytes: [UInt8], of run: MirroredRun, after last: UInt64, isLast: () -> Bool
  ) throws(FlowError) -> MirrorReply

  /// Says that this process executes a run.
  func beat(_ run: MirroredRun)

  /// The ids among these of runs that a process is heard to execute within some seconds.
  func living(_ runs: [MirroredRun]) throws(FlowError) -> Set<MirroredRun>

  /// The runs of a script, or of all for nil, each with its last message.
  func runs(of script: ByteString?) throws(FlowError) -> [(run: MirroredRun, last: MirroredBytes)]

  /// Whether there are runs of a script that can't be read with this process' key.
  func hasUnreadableRuns(of script: ByteString) throws(FlowError) -> Bool

  /// The last message of a run; nil if there is none.
  func last(of run: MirroredRun) throws(FlowError) -> MirroredBytes?

  /// Reads the messages of a run in their order, from the one after `first` to that with the number `last`.
  func read(
    _ run: MirroredRun, after first: UInt64, upTo last: UInt64,
    _ body: (MirroredBytes) throws(FlowError) -> Void
  ) throws(FlowError)

  /// Removes a run.
  func remove(_ run: MirroredRun) throws(FlowError)

  /// Ends the connection.
  func close()
}
