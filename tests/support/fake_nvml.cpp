// The driver's management library of a machine with two GPUs: one is hot, one has errors of memory and another user, and
// they do not reach each other.
#include <cstdio>
#include <cstring>

namespace {

int gpus[2];
int number(const void* device) { return static_cast<int>(static_cast<const int*>(device) - gpus); }

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &gpus[index];
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, void* pci) {
  constexpr std::size_t kId = 16 + 5 * sizeof(unsigned), kLength = 32;
  std::memset(pci, 0, kId + kLength);
  std::snprintf(static_cast<char*>(pci) + kId, kLength, "00000000:%s:00.0", number(device) == 0 ? "3B" : "86");
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::snprintf(name, length, "NVIDIA H200");
  return 0;
}
int nvmlDeviceGetClockInfo(void* device, unsigned type, unsigned* mhz) {
  *mhz = number(device) == 0 && type == 1 ? 345 : 1980;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, unsigned, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  constexpr unsigned long long kHeat = 0x40, kIdle = 0x1;
  *reasons = number(device) == 0 ? kHeat : kIdle;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* count) {
  *count = number(device) == 1 && type == 1 && counter == 0 ? 7 : 0;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void*) {
  constexpr int kInsufficientSize = 7;
  *count = static_cast<unsigned>(number(device));
  return *count == 0 ? 0 : kInsufficientSize;
}
int nvmlDeviceGetP2PStatus(void*, void*, int, int* status) {
  *status = 1;
  return 0;
}
}
