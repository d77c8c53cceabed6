package import FlowEngine

/// Which ops of a kept run are executed.
///
/// A name is that of an op (`UploadOp`), of an item (`UploadOp #40`) or of a step of a machine (`order.pay`), or a path
/// of such names, from anywhere on (`publish/UploadOp #40`). It stands for all that executes within the op, too.
package enum OpChoice {
  /// Those that aren't known to have finished with the same code and inputs.
  case changed
  /// None: what would be executed is only found out.
  case nothing
  /// Those with one of these names; the others have what they had set.
  case only([ByteString])
  /// The first one with this name, and all after it; those before it have what they had set.
  case from(ByteString)
}

extension KeptWork {
  /// Whether it is what a name stands for, or executes within that.
  func isWithin(_ name: ByteString) -> Bool {
    let names = names()
    return self.name == name || names.shown == name || names.path.isPath(within: name)
  }
}

extension OpRecord {
  /// Whether it is of what a name stands for, or of an op within that.
  package func isWithin(_ name: ByteString) -> Bool { op == name || path.isPath(within: name) }
}

extension ByteString {
  fileprivate func isPath(within name: ByteString) -> Bool {
    let around: ByteString = "/\(self)/"
    // Without its number a name is that of all items of a group, and with it that of an item with any label.
    let hasNumber = name.bytes.lastIndex(of: UInt8(ascii: "#")).map { sign in
      let digits = name.bytes[(sign + 1)...]
      return !digits.isEmpty && digits.allSatisfy { (0x30...0x39).contains($0) }
    }
    let item: ByteString = hasNumber == true ? " " : " #"
    return around.contains("/\(name)/") || around.contains("/\(name)\(item)")
  }
}
