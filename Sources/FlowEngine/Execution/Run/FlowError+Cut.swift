extension FlowError {
  /// Makes the error of a cleanup that was cut off.
  ///
  /// - Parameters:
  ///   - what: The cleanup, as the subject of a sentence.
  ///   - place: Where its code begins, if that is known.
  ///   - waits: The function that it waited in, and where, if that is known.
  ///   - isBusy: Whether it executed without waiting.
  ///   - grace: The time that it had.
  /// - Returns: The error.
  static func cut(
    _ what: ByteString, at place: ByteString?, waits: ByteString?, isBusy: Bool, grace: Duration
  ) -> FlowError {
    let place: ByteString = place.map { " at \($0)" } ?? ""
    let state: ByteString = waits.map { "waited in \($0)" } ?? (isBusy ? "was busy" : "waited")
    return FlowError(
      .error,
      """
      \(what)\(place) was cut after a grace of \(FlowValue.text(of: grace)), \
      while it \(state)
      """)
  }
}
