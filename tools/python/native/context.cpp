#include "handles.h"

namespace shardmat::python {

NativeContext::NativeContext(const std::string& backend, int threads, double timeout,
                             std::optional<std::int32_t> communicator, int owners, bool feeders) {
  shardmat_context_options options{};
  options.size = sizeof options;
  options.backend = backend.c_str();
  options.threads = threads;
  options.timeout_seconds = timeout;
  options.owners = owners;
  options.no_feeders = feeders ? 0 : 1;
  shardmat_context* made = nullptr;
  call([&] {
    return communicator ? shardmat_context_create_fortran(*communicator, &options, &made)
                        : shardmat_context_create(&options, &made);
  });
  handle_.reset(made, Destroyer<shardmat_context, shardmat_context_destroy>{});
  note_context(handle_);
}

py::dict NativeContext::info() const {
  shardmat_context_info info{};
  info.size = sizeof info;
  call([&] { return shardmat_context_get_info(get(), &info); });
  py::dict result;
  result["rank"] = info.rank;
  result["ranks"] = info.ranks;
  result["threads"] = info.threads;
  result["backend"] = info.backend;
  result["device"] = info.device < 0 ? py::object(py::none()) : py::object(py::int_(info.device));
  result["name"] = info.name;
  result["feeder"] = info.feeder != 0;
  return result;
}

void add_context(py::module_& module) {
  py::class_<NativeContext>(module, "Context")
      .def(py::init<const std::string&, int, double, std::optional<std::int32_t>, int, bool>())
      .def("info", &NativeContext::info);
}

}  // namespace shardmat::python
