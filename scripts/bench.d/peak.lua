-- Prints the peak memory of an idle interpreter, in KiB.
for line in io.lines "/proc/self/status" do
  local peak = line:match "^VmHWM:%s*(%d+)"
  if peak then print(peak) end
end
