public import FlowEngine

extension FlowHTTPRequest {
  /// Sends the request, or lets it wait while there are too many. Called on the loop's thread.
  ///
  /// ```swift
  /// let response = try await FlowHTTPRequest("https://shop.example/items").start(on: loop).value
  /// print(response.status, response.text ?? "")
  /// ```
  ///
  /// - Parameters:
  ///   - loop: The loop that the task belongs to, by default the current one.
  ///   - client: The client whose settings and limits hold; nil for none.
  /// - Returns: The task of the response.
  /// - Throws: The mistake in the request, or a `FlowError` when there is no libcurl.
  @discardableResult
  public func start(
    on loop: FlowEventLoop = .current, client: FlowHTTPClient? = nil
  ) throws -> FlowTask<FlowHTTPResponse> {
    let request = client?.completing(self, hiding: loop.secrets) ?? self
    let task = try HTTPTask(request, client: client, on: loop)
    task.start()
    return task
  }
}
