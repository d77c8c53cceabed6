/// An op about which the keeper of its run can decide when something has been read.
final class UndecidedOp {
  let work: KeptWork

  init(_ work: KeptWork, after reading: any KeptReading) {
    work.reading = reading
    self.work = work
  }
}
