/// The types of Foundation whose own form isn't the one that scripts expect.
///
/// They are recognized by their names, because the engine is independent of Foundation; and only where a
/// type has encoded itself as one of these types does, so that others cost nothing.
enum FoundationForms {
  /// `Date` encodes itself as the seconds since 2001. Values have those since 1970, as scripts get them from
  /// `os.time`.
  static let secondsTo2001: Double = 978_307_200

  /// `URL` encodes itself as a table with this field. Values have the text alone.
  static let linkField: ByteString = "relative"

  static func isDate(_ type: Any.Type) -> Bool { has(type, "Date") }

  static func isLink(_ type: Any.Type) -> Bool { has(type, "URL") }

  private static func has(_ type: Any.Type, _ name: String) -> Bool {
    let full = String(reflecting: type)
    return full == "Foundation.\(name)" || full == "FoundationEssentials.\(name)"
  }
}
