/// Reads a whole file: needs `path`, gives `content`, both byte for byte.
///
/// It runs off the loop whatever the size: a file may be on a network, or a pipe, and no look at it
/// beforehand says how long it takes.
public final class ReadFileOp: Op {
  /// An op that reads the file that `path` names in the data.
  public init() {
    super.init(
      name: "ReadFileOp", needs: Op.declarations(["path": "string"]),
      gives: Op.declarations(["content": "string"]),
      body: FileBody { context throws(FlowError) in
        let path: ByteString = try context.value("path")
        return { cancellation throws(FlowError) in try Files.read(path, cancellation) }
      })
  }
}

/// Writes a whole file, or leaves it as it was: needs `path` and `content`.
///
/// The content goes to a temporary file in the same folder, to the disk, and only then takes the
/// file's place. A file that was there keeps its permissions, and a symbolic link stays one.
public final class WriteFileOp: Op {
  /// An op that writes `content` to the file that `path` names in the data.
  public init() {
    super.init(
      name: "WriteFileOp", needs: Op.declarations(["path": "string", "content": "string"]),
      body: FileBody { context throws(FlowError) in
        let path: ByteString = try context.value("path")
        let content: ByteString = try context.value("content")
        return { cancellation throws(FlowError) in
          try Files.write(content, to: path, cancellation)
          return nil
        }
      })
  }
}
