// Child tasks of a TaskGroup that do nothing, each begun when the one before has ended, as the ops of a
// flow are. Prints ns a task.
//
//   task_group COUNT

guard CommandLine.arguments.count == 2, let count = Int(CommandLine.arguments[1]), count > 0 else {
  fatalError("usage: task_group COUNT")
}

let clock = ContinuousClock()
let elapsed = await clock.measure {
  await withTaskGroup(of: Int.self) { group in
    var sum = 0
    for _ in 0..<count {
      group.addTask { 1 }
      sum += await group.next() ?? 0
    }
    precondition(sum == count)
  }
}
print(elapsed / .nanoseconds(1) / Double(count))
