/// Reads a whole file: needs `path`, gives `content`, both byte for byte.
///
/// It always runs off the loop, whatever the size: a file may be on a network, or a pipe, and its
/// duration can't be known beforehand.
public final class ReadFileOp: Op {
  /// Makes an op that reads the file at `path`.
  public init() {
    super.init(
      nameBytes: "ReadFileOp", doc: "Reads the file at path: gives content.",
      needs: Op.declarations(["path": "string"]),
      gives: Op.declarations(["content": "string"]),
      body: FileBody { context throws(FlowError) in
        let path: ByteString = try context.value("path")
        return { memory, cancellation throws(SystemError) in
          try Files.read(path, in: memory, cancellation)
        }
      })
  }
}

/// Writes a whole file or leaves it unchanged: needs `path` and `content`.
///
/// The content is written to a temporary file in the same folder, then flushed to the disk, and
/// only then does that file replace the old one. An existing file keeps its permissions, and a
/// symbolic link stays a link.
public final class WriteFileOp: Op {
  /// Makes an op that writes `content` to the file at `path`.
  public init() {
    super.init(
      nameBytes: "WriteFileOp",
      doc: "Writes content to the file at path, or leaves that unchanged.",
      needs: Op.declarations(["path": "string", "content": "string"]),
      body: FileBody { context throws(FlowError) in
        let path: ByteString = try context.value("path")
        let content: ByteString = try context.value("content")
        return { _, cancellation throws(SystemError) in
          try Files.write(content, to: path, cancellation)
          return nil
        }
      })
  }
}
