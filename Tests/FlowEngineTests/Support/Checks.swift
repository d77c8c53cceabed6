import FlowEngine
import Testing

/// The problems that a check reports, in the form `error UploadOp: sentence`.
func said(_ flow: Flow, data: InitialData? = nil) -> [String] {
  flow.check(data: data).map { "\($0.severity.name) \($0.op): \($0.message)" }
}

/// An op that no check executes.
func checkedOp(
  _ name: ByteString, needs: KeyValuePairs<String, String> = [:],
  gives: KeyValuePairs<String, String> = ["other": "any"]
) -> Op {
  Op(name.description, needs: needs, gives: gives) { _ in Issue.record("a check has run an op") }
}
