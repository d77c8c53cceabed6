package import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The thread of an op written in Lua.
package enum OpThread: String {
  /// On the thread of the script, like its other code.
  case main
  /// In a worker.
  case worker
  /// In a worker of any node that has joined.
  case remote

  /// The words that scripts write, for messages.
  package static let expected = "\"main\", \"worker\" or \"remote\" expected"
}

/// The tags that a node needs for certain ops, such as `gpu`: words that its owner gives it when it joins.
package struct RemoteTags: Hashable, Sendable {
  /// Sorted, each once.
  package let words: [ByteString]

  /// How many a node or an op may have: a node looks for work of each set of its own.
  package static let most = 4
  private static let longest = 32

  /// No tags: any node.
  package init() { words = [] }

  /// Reads words that are separated by spaces or commas; throws an error of kind `usage`.
  package init(_ text: ByteString) throws(FlowError) {
    let separators = [UInt8(ascii: " "), UInt8(ascii: ","), UInt8(ascii: "\t")]
    try self.init(text.bytes.split { separators.contains($0) }.map { ByteString($0) })
  }

  package init(_ words: [ByteString]) throws(FlowError) {
    for word in words {
      let isWord =
        !word.isEmpty && word.count <= Self.longest
        && word.bytes.allSatisfy {
          $0.isLetter || $0.isDigit || "_-".bytes.contains($0)
        }
      guard isWord else {
        throw .usage(
          "a tag has up to \(Self.longest) letters, digits, '_' or '-', not '\(word)'")
      }
    }
    self.words = Set(words).sorted()
    if self.words.count > Self.most {
      throw .usage("at most \(Self.most) tags expected, got \(self.words.count)")
    }
  }

  /// The field `tags` of an op: a text, or a list of words; nil without it.
  package init?(_ options: Options) throws {
    var words: [ByteString] = []
    switch options.value("tags") {
    case nil: return nil
    case .string(let text)?: words = [text]
    case .reference(let list)? where list.kind == .table:
      let vm = options.arguments.host.vm
      while case let value = try vm.rawGet(.integer(Int64(words.count + 1)), in: list), !value.isNil
      {
        guard case .string(let word) = value, words.count <= Self.most else {
          throw options.wrong("tags", expected: "string or list of at most \(Self.most) strings")
        }
        words.append(word)
      }
    default: throw options.wrong("tags", expected: "string or list of strings")
    }
    do throws(FlowError) { try self.init(words.joined(separator: " ")) } catch {
      throw options.arguments.wrong(options.index, "field 'tags': \(error.message)")
    }
  }

  package var isEmpty: Bool { words.isEmpty }
  /// `big gpu`.
  package var text: ByteString { words.joined(separator: " ") }
  /// A part of subjects: `big+gpu`, and `any` for no tags. No word contains a `+`.
  package var token: ByteString { isEmpty ? "+any" : words.joined(separator: "+") }

  /// All sets whose ops a node with these tags may execute.
  package var subsets: [RemoteTags] {
    (0..<(1 << words.count)).map { bits in
      RemoteTags(sorted: words.indices.filter { bits >> $0 & 1 == 1 }.map { words[$0] })
    }
  }

  private init(sorted words: [ByteString]) { self.words = words }

  /// Whether a node with these tags may execute an op with those.
  package func covers(_ others: RemoteTags) -> Bool {
    others.words.allSatisfy { words.contains($0) }
  }
}
