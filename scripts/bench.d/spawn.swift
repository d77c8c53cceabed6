// Starts two commands in turn, A B A B, and prints the median of the time that each takes and of its CPU time, in
// microseconds.
//
//   spawn ROUNDS PROGRAM_A PROGRAM_B ARGUMENT
//
// A program may come with options, at spaces.

import Glibc

let arguments = CommandLine.arguments
guard arguments.count == 5, let rounds = Int(arguments[1]), rounds > 0 else {
  print("usage: spawn ROUNDS PROGRAM_A PROGRAM_B ARGUMENT")
  exit(2)
}

func timesOfOneRun(of program: String) -> (wall: Double, cpu: Double) {
  var identifier = pid_t()
  var status: Int32 = 0
  var usage = rusage()
  let words = program.split(separator: " ").map(String.init)
  var argv = (words + [arguments[4]]).map { strdup($0) } + [nil]
  defer { argv.forEach { free($0) } }
  let clock = ContinuousClock()
  let begun = clock.now
  guard posix_spawnp(&identifier, words[0], nil, nil, &argv, environ) == 0,
    wait4(identifier, &status, 0, &usage) == identifier, status == 0
  else {
    print("\(program) failed")
    exit(1)
  }
  let wall = (clock.now - begun) / .microseconds(1)
  let cpu = [usage.ru_utime, usage.ru_stime].reduce(0) {
    $0 + Double($1.tv_sec) * 1e6 + Double($1.tv_usec)
  }
  return (wall, cpu)
}

var times: [[(wall: Double, cpu: Double)]] = [[], []]
for _ in 0..<rounds {
  for side in 0...1 {
    times[side].append(timesOfOneRun(of: arguments[2 + side]))
  }
}
for side in 0...1 {
  print(times[side].map(\.wall).sorted()[rounds / 2], times[side].map(\.cpu).sorted()[rounds / 2])
}
