// NVLink between the hosts that pretended_hosts.h makes: LD_PRELOAD=libnvlink_between_hosts.so with SHARDMAT_TEST_HOSTS_OF=2
// gives NCCL two hosts of one NVLink domain, as in a rack of such. Ranks then reach all GPUs' memory, so that two GPUs with
// an NVLink switch show `peer` on three and four ranks.
//
// NCCL shares memory between such hosts by fabric handles (CUmemFabricHandle), which take a service that most machines do
// not run. Here a fabric handle is a file descriptor of the process that exported it, which others ask that process for
// through a socket. NCCL gets at the driver by dlsym() and cuGetProcAddress(), and so do the functions below.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

namespace {

constexpr int kNoFile = -1;

/// NCCL leaves this out where it is not asked for, and pretended hosts do without unless it is.
[[gnu::constructor]] void ask_for_nvlink() { setenv("NCCL_MNNVL_ENABLE", "1", 1); }

// Descriptors handed from process to process.

struct Socket {
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close(file); }
};

/// f(address, length) with that of a process's socket.
template <class F>
int at_address_of(pid_t process, const F& f) {
  const std::string name = "shardmat-fabric-" + std::to_string(process);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // no file: begins with a 0
  return f(reinterpret_cast<const sockaddr*>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
}

/// A message of one byte with room for a descriptor.
struct Parcel {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
  Parcel() {
    message.msg_iov = &data, message.msg_iovlen = 1;
    message.msg_control = room.data(), message.msg_controllen = room.size();
  }
};

void send_file(int to, int file) {
  Parcel parcel;
  cmsghdr* header = CMSG_FIRSTHDR(&parcel.message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  if (sendmsg(to, &parcel.message, MSG_NOSIGNAL) < 0) std::perror("nvlink_between_hosts: a file for another rank");
}

/// Answers, to the end of the process, what others ask for.
void serve_files() {
  static const Socket listening;
  const auto name_it = [](auto address, auto length) { return bind(listening.file, address, length); };
  if (at_address_of(getpid(), name_it) != 0 || listen(listening.file, SOMAXCONN) != 0) {
    std::perror("nvlink_between_hosts: a socket for other ranks");
    std::abort();
  }
  std::thread([] {
    for (;;) {
      const int asking = accept(listening.file, nullptr, nullptr);
      if (asking == kNoFile) continue;
      int file = kNoFile;
      if (read(asking, &file, sizeof file) == sizeof file) send_file(asking, file);
      close(asking);
    }
  }).detach();
}

int file_of(pid_t process, int file) {
  const Socket asking;
  const auto reach = [&](auto address, auto length) { return connect(asking.file, address, length); };
  if (at_address_of(process, reach) != 0 || write(asking.file, &file, sizeof file) != sizeof file) return kNoFile;
  Parcel parcel;
  int received = kNoFile;
  if (recvmsg(asking.file, &parcel.message, MSG_CMSG_CLOEXEC) == 1)
    if (const cmsghdr* header = CMSG_FIRSTHDR(&parcel.message)) std::memcpy(&received, CMSG_DATA(header), sizeof received);
  return received;
}

// The driver's functions.

struct FabricHandle {
  pid_t process;
  int file;
};
static_assert(sizeof(FabricHandle) <= sizeof(CUmemFabricHandle));

/// The driver's own, known as NCCL asks for them.
struct Driver {
  decltype(&cuGetProcAddress_v2) get_proc_address;
  decltype(&cuDeviceGetAttribute) device_get_attribute;
  decltype(&cuMemCreate) mem_create;
  decltype(&cuMemRelease) mem_release;
  decltype(&cuMemGetAllocationGranularity) mem_get_allocation_granularity;
  decltype(&cuMemExportToShareableHandle) mem_export;
  decltype(&cuMemImportFromShareableHandle) mem_import;
  int (*get_gpu_fabric_info)(void* device, void* info);
} driver;

std::mutex exported_mutex;
std::multimap<CUmemGenericAllocationHandle, int> exported;  ///< files, open until the memory is let go of

CUresult device_get_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (attribute != CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED)
    return driver.device_get_attribute(value, attribute, device);
  *value = 1;
  return CUDA_SUCCESS;
}

CUmemAllocationProp by_file(CUmemAllocationProp properties) {
  if ((properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0)
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

CUresult mem_create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                    unsigned long long flags) {
  const CUmemAllocationProp changed = by_file(*properties);
  return driver.mem_create(handle, bytes, &changed, flags);
}

CUresult mem_get_allocation_granularity(size_t* bytes, const CUmemAllocationProp* properties,
                                        CUmemAllocationGranularity_flags flags) {
  const CUmemAllocationProp changed = by_file(*properties);
  return driver.mem_get_allocation_granularity(bytes, &changed, flags);
}

CUresult mem_export(void* shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                    unsigned long long flags) {
  if (type != CU_MEM_HANDLE_TYPE_FABRIC) return driver.mem_export(shared, handle, type, flags);
  static std::once_flag once;
  std::call_once(once, serve_files);
  FabricHandle fabric{getpid(), kNoFile};
  const CUresult result = driver.mem_export(&fabric.file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, flags);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(exported_mutex);
  exported.emplace(handle, fabric.file);
  std::memset(shared, 0, sizeof(CUmemFabricHandle));
  std::memcpy(shared, &fabric, sizeof fabric);
  return CUDA_SUCCESS;
}

CUresult mem_import(CUmemGenericAllocationHandle* handle, void* shared, CUmemAllocationHandleType type) {
  if (type != CU_MEM_HANDLE_TYPE_FABRIC) return driver.mem_import(handle, shared, type);
  FabricHandle fabric{};
  std::memcpy(&fabric, shared, sizeof fabric);
  const int file = file_of(fabric.process, fabric.file);
  if (file == kNoFile) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = driver.mem_import(handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)),
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(file);
  return result;
}

CUresult mem_release(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(exported_mutex);
  const auto [first, last] = exported.equal_range(handle);
  for (auto file = first; file != last; ++file) close(file->second);
  exported.erase(first, last);
  return driver.mem_release(handle);
}

/// nvmlDeviceGetGpuFabricInfoV(): all GPUs are in the same domain.
int get_gpu_fabric_info(void* device, void* info) {
  struct FabricInfo {  // the beginning of nvmlGpuFabricInfo_v2_t and later
    unsigned version;
    std::array<unsigned char, 16> domain;
    int status;
    unsigned clique;
    unsigned char state;
  };
  constexpr unsigned char kCompleted = 3;
  driver.get_gpu_fabric_info(device, info);
  auto& fabric = *static_cast<FabricInfo*>(info);
  fabric.domain.fill(1), fabric.status = 0, fabric.clique = 1, fabric.state = kCompleted;
  return 0;
}

CUresult get_proc_address(const char* name, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* found);

/// What a caller gets in place of the driver's `function`, or `function`.
void* replaced(std::string_view name, void* function) {
  const auto replace = [&](std::string_view its_name, auto*& own, auto* by) {
    if (name != its_name) return false;
    own = reinterpret_cast<std::remove_reference_t<decltype(own)>>(function);
    function = reinterpret_cast<void*>(by);
    return true;
  };
  replace("cuGetProcAddress_v2", driver.get_proc_address, &get_proc_address) ||
      replace("cuDeviceGetAttribute", driver.device_get_attribute, &device_get_attribute) ||
      replace("cuMemCreate", driver.mem_create, &mem_create) || replace("cuMemRelease", driver.mem_release, &mem_release) ||
      replace("cuMemGetAllocationGranularity", driver.mem_get_allocation_granularity, &mem_get_allocation_granularity) ||
      replace("cuMemExportToShareableHandle", driver.mem_export, &mem_export) ||
      replace("cuMemImportFromShareableHandle", driver.mem_import, &mem_import) ||
      replace("nvmlDeviceGetGpuFabricInfoV", driver.get_gpu_fabric_info, &get_gpu_fabric_info);
  return function;
}

CUresult get_proc_address(const char* name, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* found) {
  const CUresult result = driver.get_proc_address(name, function, version, flags, found);
  // cuGetProcAddress got its fifth parameter in CUDA 12, under the old name.
  const bool itself = name == std::string_view("cuGetProcAddress") && version >= 12000;
  if (result == CUDA_SUCCESS && function != nullptr && *function != nullptr)
    *function = replaced(itself ? "cuGetProcAddress_v2" : name, *function);
  return result;
}

}  // namespace

extern "C" void* dlsym(void* library, const char* name) {
  static const auto own = reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  void* function = own(library, name);
  return function == nullptr ? nullptr : replaced(name, function);
}
