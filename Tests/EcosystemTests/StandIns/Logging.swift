// A stand-in of swift-log's module `Logging`: the same signatures, for the adapters of the tests and of the
// documentation. The package itself isn't a dependency.
import Synchronization

/// Writes messages to its handler.
public struct Logger: Sendable {
  /// The severity of a message.
  public enum Level: String, Codable, CaseIterable, Sendable {
    case trace, debug, info, notice, warning, error, critical
  }

  /// The text of a message.
  public struct Message: ExpressibleByStringInterpolation, CustomStringConvertible, Sendable {
    public let description: String

    public init(stringLiteral value: String) { description = value }
  }

  /// A value of the metadata; the others of swift-log are left out.
  public enum MetadataValue: Sendable, Equatable {
    case string(String)
  }

  public typealias Metadata = [String: MetadataValue]

  public let label: String
  public var logLevel: Level = .info
  /// The messages that were written: the stand-in of `LogHandler`.
  private let written = Lines()

  public init(label: String) { self.label = label }

  public func log(
    level: Logger.Level, _ message: @autoclosure () -> Logger.Message,
    metadata: @autoclosure () -> Logger.Metadata? = nil,
    source: @autoclosure () -> String? = nil, file: String = #fileID, function: String = #function,
    line: UInt = #line
  ) {
    guard Level.allCases.firstIndex(of: level) ?? 0 >= Level.allCases.firstIndex(of: logLevel) ?? 0
    else { return }
    written.append(Entry("\(level) \(message())", metadata() ?? [:], source() ?? ""))
  }

  /// A message that it has written.
  struct Entry: Sendable {
    let line: String
    let metadata: Metadata
    let source: String

    init(_ line: String, _ metadata: Metadata, _ source: String) {
      self.line = line
      self.metadata = metadata
      self.source = source
    }
  }

  var entries: [Entry] { written.all }

  private final class Lines: Sendable {
    private let list = Mutex<[Entry]>([])

    func append(_ entry: Entry) { list.withLock { $0.append(entry) } }

    var all: [Entry] { list.withLock { $0 } }
  }
}
