internal import FlowSystem
package import FlowEngine

/// The folder of a store and the key in it.
package enum StoreKey {
  /// The number of bytes of a key.
  static let size = 32

  /// Makes the folder of a store unless it exists, for this user only.
  package static func makeFolder(_ folder: ByteString) throws(FlowError) {
    guard let made = folder.withCString({ mkdir($0, 0o700) }) else {
      throw StoreProblem.other.error("the path '\(folder.escapingNUL)' has a NUL byte in it")
    }
    defer { Failpoint.pass() }
    if made != 0, errno == ENOENT {
      do throws(SystemError) { try Folders.make(folder) } catch {
        throw StoreProblem.system("make", folder, error.code ?? EIO)
      }
      _ = folder.withCString { chmod($0, 0o700) }
      return
    }
    if made != 0, errno != EEXIST { throw StoreProblem.system("make", folder, errno) }
  }

  /// Makes the file of the database unless it exists, for this user only: SQLite would let others read it.
  static func makeDatabase(in folder: ByteString) throws(FlowError) {
    // Without a descriptor: closing one would end the locks that another thread has on the file by then.
    let made = (folder + "/store.sqlite").withCString { mknod($0, S_IFREG | 0o600, 0) }
    if made != .some(0), errno != EEXIST { throw StoreProblem.system("write", folder, errno) }
    Failpoint.pass()
  }

  /// Refuses a file system whose locks or shared memory can't be trusted.
  static func checkFileSystem(of folder: ByteString) throws(FlowError) {
    let type = folder.withCString { flowsystem_file_system($0) } ?? -1
    if type < 0 { throw StoreProblem.system("open", folder, errno) }
    guard let name = networkName(of: type) else { return }
    throw StoreProblem.unsuitable.error(
      "the store '\(folder)' is on a network file system (\(name)), whose locks it can't use: "
        + "choose a local folder with --store")
  }

  /// The name of a network file system by its number in <linux/magic.h>; nil for others.
  static func networkName(of type: Int64) -> ByteString? {
    switch type {
    case 0x6969: "NFS"
    case 0x517B, 0xFF53_4D42, 0xFE53_4D42: "SMB"
    case 0x5346_414F, 0x6B41_4653: "AFS"
    case 0x00C3_6400: "Ceph"
    case 0x0BD0_0BD0: "Lustre"
    case 0x7375_7245: "Coda"
    default: nil
    }
  }

  /// A new key.
  static func make() -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return (0..<size).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  /// The key of a store; makes it unless it exists, when that is allowed: the given one, or a new one.
  static func open(
    in folder: ByteString, makes: Bool, given: [UInt8]? = nil
  ) throws(FlowError) -> [UInt8] {
    let path = folder + "/key"
    if let key = try read(path, of: folder) { return key }
    guard makes else {
      throw StoreProblem.damaged.error("the store '\(folder)' has no file 'key'")
    }
    let key = given ?? make()
    // Another process may make it at the same time: the name comes with the whole content.
    let temporary = path + "-" + ByteString(String(UInt64.random(in: 0 ... .max), radix: 36))
    try StoreFiles.write(key, to: temporary, of: folder)
    Failpoint.pass()
    let linked = temporary.withCString { from in path.withCString { link(from, $0) } }
    let number = errno
    Failpoint.pass()
    _ = temporary.withCString { unlink($0) }
    Failpoint.pass()
    if linked != .some(.some(0)), number != EEXIST {
      throw StoreProblem.system("write", folder, number)
    }
    try StoreFiles.synchronize(folder, of: folder)
    guard let present = try read(path, of: folder) else {
      throw StoreProblem.removed.error("the store '\(folder)' was removed while it was in use")
    }
    return present
  }

  private static func read(
    _ path: ByteString, of folder: ByteString
  ) throws(FlowError) -> [UInt8]? {
    do throws(SystemError) {
      let key = try Files.read(path, Cancellation()).bytes
      if key.count == size { return key }
    } catch {
      if error.code == ENOENT { return nil }
      throw StoreProblem.system("open", folder, error.code ?? EIO)
    }
    throw StoreProblem.damaged.error("'\(path)' isn't the key of a store: it must have 32 bytes")
  }
}

/// Encrypts values that mustn't be readable in a store, by AES-256-GCM.
///
/// The key is made of the text that the user keeps, and of the key of the store as the salt, by HKDF with SHA-256: the
/// same text is another key for another store. HKDF is quick, so the text has to be a random one, not a word.
package final class StoreCipher {
  private let cipher: Cipher

  /// A cipher for a store, with the text of `FLOWLUA_STORE_KEY`.
  package init(text: ByteString, of store: JournalStore) throws(FlowError) {
    do throws(SystemError) {
      // RFC 5869: extract, then one block of expand.
      let extracted = try KeyedHash(key: store.key).code(of: text.bytes)
      let info = "flowlua secrets".bytes + [1]
      cipher = try Cipher(key: KeyedHash(key: extracted).code(of: info))
    } catch {
      throw .from(error)
    }
  }

  /// Encrypts bytes for one place: at another one they can't be read.
  package func encrypt(_ bytes: [UInt8], for place: [UInt8]) throws(FlowError) -> [UInt8] {
    do throws(SystemError) { return try cipher.encrypt(bytes, for: place) } catch {
      throw .from(error)
    }
  }

  /// Decrypts what `encrypt` has returned; nil for another key, another place or changed bytes.
  package func decrypt(_ bytes: [UInt8], for place: [UInt8]) -> [UInt8]? {
    cipher.decrypt(bytes, for: place)
  }
}

extension OpRecord {
  /// The place that an encrypted value is bound to: elsewhere it can't be read.
  func binding(of name: ByteString, in run: ByteString) -> [UInt8] {
    var place = ByteWriter()
    for part in [run, op, key, name] { place.add(part) }
    return place.bytes
  }
}
