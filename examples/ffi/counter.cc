// A handler with state: each compiled program counts its own calls.
//
// XLA makes the state when it compiles a call (`instantiate`), hands it to each run (`execute`), and
// deletes it with the program. It has to know the type: olympus.ffi.register_ffi_type.

#include <atomic>
#include <cstdint>
#include <memory>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  std::atomic<int64_t> next;
};

ffi::TypeId Counter::id = {};  // XLA writes it
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();

static ffi::ErrorOr<std::unique_ptr<Counter>> CounterMake(int64_t start) {
  auto counter = std::make_unique<Counter>();
  counter->next = start;
  return counter;
}

static ffi::Error CounterCount(Counter* counter, ffi::ResultBuffer<ffi::S32> count) {
  *count->typed_data() = static_cast<int32_t>(counter->next++);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(CounterInstantiate, CounterMake,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("start"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    CounterExecute, CounterCount,
    ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::Buffer<ffi::S32>>());

extern "C" void* CounterId() { return &Counter::id; }
extern "C" void* CounterInfo() { return &Counter::info; }
