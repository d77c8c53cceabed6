import FlowLoop
import Testing

@Suite("Patterns for names and paths")
struct GlobTests {
  private func matches(_ pattern: ByteString, _ path: ByteString) throws -> Bool {
    let glob = try Glob(pattern)
    let name = path.bytes.split(separator: UInt8(ascii: "/")).last.map { Array($0) } ?? []
    return name.withUnsafeBufferPointer { glob.matches(path: path.bytes[...], name: $0) }
  }

  @Test(
    "A pattern matches",
    arguments: [
      ("*", ""), ("*", "abc"), ("a*c", "ac"), ("a*c", "abcbc"), ("?", "ä"), ("??", "\u{1F600}x"),
      ("[a-c]x", "bx"), ("[!a-c]x", "dx"), ("[^a]", "b"), ("[]]", "]"), ("[!]]", "a"),
      ("[a-]", "-"), ("[\\]]", "]"), ("\\*", "*"), ("[ä-ü]", "ö"), ("*.txt", "sub/a.txt"),
      ("**/a", "a"), ("**/a", "x/y/a"), ("x/**/a", "x/a"), ("x/**", "x/y/z"),
      ("**/x/**/a", "b/x/a"),
      ("*/a", "x/a"), ("x/*.txt", "x/.txt"), ("a**b", "axxb"),
    ] as [(ByteString, ByteString)])
  func matchingPattern(_ pattern: ByteString, _ path: ByteString) throws {
    #expect(try matches(pattern, path))
  }

  @Test(
    "A pattern doesn't match",
    arguments: [
      ("?", ""), ("?", "ab"), ("a", "A"), ("[a-c]", "d"), ("[!a]", "a"), ("*.txt", "a.text"),
      ("*/a", "a"), ("*/a", "x/y/a"), ("x/*", "x/y/z"), ("**/a", "x/ab"), ("x/**/a", "y/a"),
      ("x/?", "x/yz"), ("\\*", "a"), ("x[/]a", "x/a"),
    ] as [(ByteString, ByteString)])
  func differentPattern(_ pattern: ByteString, _ path: ByteString) throws {
    let isMatch = (try? matches(pattern, path)) ?? false
    #expect(!isMatch)
  }

  @Test("Bytes that aren't UTF-8 are characters of their own")
  func bytesAreCharacters() throws {
    #expect(try matches("?", ByteString([0xFF])))
    #expect(try matches("??", ByteString([0xC3, 0x28])))
    #expect(try !matches("?", ByteString([0xE9, 0xE8])))
    #expect(try matches(ByteString(Array("[".utf8) + [0xE9] + Array("]".utf8)), ByteString([0xE9])))
    // The character U+00E9 isn't the byte 0xE9.
    #expect(try !matches("\u{E9}", ByteString([0xE9])))
    // An overlong form of "/", and half of a pair.
    #expect(try matches("??", ByteString([0xC0, 0xAF])))
    #expect(try matches("???", ByteString([0xED, 0xA0, 0x80])))
  }

  @Test("The time doesn't explode with the number of stars")
  func manyStars() throws {
    let text = ByteString([UInt8](repeating: UInt8(ascii: "a"), count: 2_000))
    let stars = ByteString(String(repeating: "*a", count: 100) + "*b")
    #expect(try !matches(stars, text))
    let deep = ByteString(String(repeating: "a/", count: 500) + "a")
    #expect(try !matches(ByteString(String(repeating: "**/a/", count: 30) + "b/a"), deep))
  }

  @Test(
    "A mistake in a pattern is an error", arguments: ["", "[", "[]", "a\\", "[b-a]", "[a-", "[\\"])
  func mistakes(_ pattern: String) {
    #expect(throws: Glob.Mistake.self) { try Glob(ByteString(pattern)) }
  }
}
