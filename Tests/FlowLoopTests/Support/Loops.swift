import FlowLoop

// Like a program that embeds this package: literals are strings.
typealias StringLiteralType = String
typealias ExtendedGraphemeClusterType = String
typealias UnicodeScalarType = String

/// A loop that needs no real time.
func makeLoop() -> FlowEventLoop { FlowEventLoop(timedBy: VirtualClock()) }

/// A loop with the clock of the machine.
func makeTimedLoop() -> FlowEventLoop { FlowEventLoop(timedBy: SystemClock()) }
