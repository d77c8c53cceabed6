/// The names of lanes that aren't workers of this process. Confined to the thread of a loop, whose logs share it.
package final class LaneNames {
  private var names: [UInt8: ByteString] = [:]
  private var lanes: [ByteString: UInt8] = [:]

  /// The lane of all names for which there is none left.
  private static let last = UInt8.max
  /// Workers of this process have the lanes from 1 on.
  private static let first: UInt8 = 128

  package init() {}

  /// The lane of a name, always the same for the same name.
  package func lane(named name: ByteString) -> UInt8 {
    if let known = lanes[name] { return known }
    let (next, isOver) = Self.first.addingReportingOverflow(UInt8(clamping: lanes.count))
    guard !isOver, next < Self.last else {
      names[Self.last] = "others"
      return Self.last
    }
    lanes[name] = next
    names[next] = name
    return next
  }

  /// The name of a lane; nil for a worker of this process, and for the loop itself.
  package func name(of lane: UInt8) -> ByteString? { names.isEmpty ? nil : names[lane] }

  /// All names by their lanes.
  package var all: [UInt8: ByteString] { names }
}
