// NVLink between the hosts that pretended_hosts.h makes: LD_PRELOAD=libnvlink_between_hosts.so with SHARDMAT_TEST_HOSTS_OF=2
// gives NCCL two hosts of one NVLink domain, as in a rack of such. Ranks then reach all GPUs' memory, so that two GPUs with
// an NVLink switch show `peer` on three and four ranks.
//
// NCCL shares memory between such hosts by fabric handles (CUmemFabricHandle), which take a service that most machines do
// not run. Here a fabric handle names memory of the process that exported it, and who imports it asks that process through a
// socket for a file descriptor. NCCL finds the driver's functions by dlsym() and cuGetProcAddress(); this library answers
// both with its own.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

namespace {

constexpr int kNoFile = -1;

[[gnu::constructor]] void settings() {
  setenv("NCCL_MNNVL_ENABLE", "1", 1);  // pretended hosts have no NVLink between them unless this is set
  setenv("NCCL_NVLS_ENABLE", "0", 1);   // multicast takes every GPU once, and here ranks share them
}

// The driver's functions that are replaced.

/// The driver's own, once somebody has asked for it.
template <class Signature>
struct Driver {
  std::atomic<void*> own{nullptr};
  template <class... Arguments>
  auto operator()(Arguments... arguments) const {
    return reinterpret_cast<Signature*>(own.load(std::memory_order_relaxed))(arguments...);
  }
};

Driver<decltype(cuGetProcAddress_v2)> driver_get_proc_address;
Driver<decltype(cuDeviceGetAttribute)> driver_device_get_attribute;
Driver<decltype(cuMemCreate)> driver_create;
Driver<decltype(cuMemGetAllocationGranularity)> driver_get_granularity;
Driver<decltype(cuMemExportToShareableHandle)> driver_export;
Driver<decltype(cuMemImportFromShareableHandle)> driver_import;
Driver<int(void*, void*)> driver_get_fabric_info;

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

/// Sends a descriptor of memory of this process to who asks for it.
void answer(int asking) {
  CUmemGenericAllocationHandle handle = 0;
  int file = kNoFile;
  if (read(asking, &handle, sizeof handle) != sizeof handle) return;
  const CUresult result = driver_export(static_cast<void*>(&file), handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ULL);
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "nvlink_between_hosts: exporting memory fails with CUDA error %d\n", result);
    return;
  }
  Parcel parcel;
  cmsghdr* header = CMSG_FIRSTHDR(&parcel.message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  if (sendmsg(asking, &parcel.message, MSG_NOSIGNAL) < 0) std::perror("nvlink_between_hosts: memory for another rank");
  close(file);
}

/// Answers, to the end of the process, what others ask for.
void serve() {
  static Socket& listening = *new Socket;  // to the end
  const auto name_it = [](auto address, auto length) { return bind(listening.file, address, length); };
  if (at_address_of(getpid(), name_it) != 0 || listen(listening.file, SOMAXCONN) != 0) {
    std::perror("nvlink_between_hosts: a socket for other ranks");
    std::abort();
  }
  std::thread([] {
    for (;;) {
      const int asking = accept4(listening.file, nullptr, nullptr, SOCK_CLOEXEC);
      if (asking < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (asking < 0) return std::perror("nvlink_between_hosts: other ranks can ask no more");
      constexpr timeval kPatience{5, 0};  // a rank may be stopped before it says what it wants
      setsockopt(asking, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
      answer(asking);
      close(asking);
    }
  }).detach();
}

int ask(pid_t process, CUmemGenericAllocationHandle handle) {
  const Socket asking;
  const auto reach = [&](auto address, auto length) { return connect(asking.file, address, length); };
  if (at_address_of(process, reach) != 0 || write(asking.file, &handle, sizeof handle) != sizeof handle) return kNoFile;
  Parcel parcel;
  int file = kNoFile;
  if (recvmsg(asking.file, &parcel.message, MSG_CMSG_CLOEXEC) == 1)
    if (const cmsghdr* header = CMSG_FIRSTHDR(&parcel.message)) std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return file;
}

// What replaces the driver's functions.

struct FabricHandle {
  pid_t process;
  CUmemGenericAllocationHandle handle;  ///< of that process
};
static_assert(sizeof(FabricHandle) <= sizeof(CUmemFabricHandle));

CUresult device_get_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (attribute != CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED)
    return driver_device_get_attribute(value, attribute, device);
  *value = 1;
  return CUDA_SUCCESS;
}

CUmemAllocationProp by_file(CUmemAllocationProp properties) {
  if ((properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0)
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                unsigned long long flags) {
  const CUmemAllocationProp changed = by_file(*properties);
  return driver_create(handle, bytes, &changed, flags);
}

CUresult get_granularity(size_t* bytes, const CUmemAllocationProp* properties, CUmemAllocationGranularity_flags flags) {
  const CUmemAllocationProp changed = by_file(*properties);
  return driver_get_granularity(bytes, &changed, flags);
}

CUresult export_handle(void* shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                       unsigned long long flags) {
  if (type != CU_MEM_HANDLE_TYPE_FABRIC) return driver_export(shared, handle, type, flags);
  static std::once_flag once;
  std::call_once(once, serve);
  const FabricHandle fabric{getpid(), handle};
  std::memset(shared, 0, sizeof(CUmemFabricHandle));
  std::memcpy(shared, &fabric, sizeof fabric);
  return CUDA_SUCCESS;
}

CUresult import_handle(CUmemGenericAllocationHandle* handle, void* shared, CUmemAllocationHandleType type) {
  if (type != CU_MEM_HANDLE_TYPE_FABRIC) return driver_import(handle, shared, type);
  FabricHandle fabric{};
  std::memcpy(&fabric, shared, sizeof fabric);
  const int file = ask(fabric.process, fabric.handle);
  if (file == kNoFile) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = driver_import(handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)),
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(file);
  return result;
}

/// nvmlDeviceGetGpuFabricInfoV(): all GPUs are in the same domain.
int get_fabric_info(void* device, void* info) {
  struct FabricInfo {  // the beginning of nvmlGpuFabricInfo_v2_t and later
    unsigned version;
    std::array<unsigned char, 16> domain;
    int status;
    unsigned clique;
    unsigned char state;
  };
  constexpr unsigned char kCompleted = 3;
  driver_get_fabric_info(device, info);
  auto& fabric = *static_cast<FabricInfo*>(info);
  fabric.domain.fill(1), fabric.status = 0, fabric.clique = 1, fabric.state = kCompleted;
  return 0;
}

CUresult get_proc_address(const char* name, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* found);

struct Replacement {
  std::string_view name;
  std::atomic<void*>& own;
  void* by;
};

template <class Signature>
Replacement replacement(std::string_view name, Driver<Signature>& driver, std::type_identity_t<Signature>* by) {
  return {name, driver.own, reinterpret_cast<void*>(by)};
}

const Replacement* find_replacement(std::string_view name) {
  static const std::array all = {
      replacement("cuGetProcAddress_v2", driver_get_proc_address, get_proc_address),
      replacement("cuDeviceGetAttribute", driver_device_get_attribute, device_get_attribute),
      replacement("cuMemCreate", driver_create, create),
      replacement("cuMemGetAllocationGranularity", driver_get_granularity, get_granularity),
      replacement("cuMemExportToShareableHandle", driver_export, export_handle),
      replacement("cuMemImportFromShareableHandle", driver_import, import_handle),
      replacement("nvmlDeviceGetGpuFabricInfoV", driver_get_fabric_info, get_fabric_info),
  };
  for (const Replacement& one : all)
    if (one.name == name) return &one;
  return nullptr;
}

void* replace(const Replacement& one, void* own) {
  if (own == nullptr) return nullptr;
  one.own.store(own, std::memory_order_relaxed);
  return one.by;
}

CUresult get_proc_address(const char* name, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* found) {
  const CUresult result = driver_get_proc_address(name, function, version, flags, found);
  if (result != CUDA_SUCCESS || function == nullptr) return result;
  // cuGetProcAddress got its fifth parameter in CUDA 12, under the old name.
  const bool itself = name == std::string_view("cuGetProcAddress") && version >= 12000;
  if (const Replacement* one = find_replacement(itself ? "cuGetProcAddress_v2" : name)) *function = replace(*one, *function);
  return result;
}

}  // namespace

/// In place of the C library's. That looks for RTLD_NEXT behind its caller, so that calls go on to it from the last
/// statement, which an optimising compiler makes a jump.
extern "C" void* dlsym(void* library, const char* name) {
  static const auto own = reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  if (const Replacement* one = find_replacement(name)) return replace(*one, own(library, name));
  return own(library, name);
}
