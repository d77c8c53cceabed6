internal import CCurl

/// The library that sends requests: libcurl.
package enum HTTPLibrary {
  /// Sets a function that is called once, on any thread, when the library has been opened.
  ///
  /// The libraries that it uses for TLS clean up when the process exits, before what was registered earlier.
  /// A request at the exit has to be registered from here on.
  package static func whenOpened(_ call: @convention(c) () -> Void) { ccurl_when_loaded(call) }
}
