import FlowLoop

/// A loop that needs no real time.
func makeLoop() -> EventLoop { EventLoop(timedBy: VirtualClock()) }

/// A loop with the clock of the machine.
func makeTimedLoop() -> EventLoop { EventLoop(timedBy: SystemClock()) }
