// Handlers that tests/test_ffi.py calls: they tell what reaches them.

#include <atomic>
#include <cinttypes>
#include <cstring>
#include <string>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static std::string Hex(const void* data, size_t size) {
  std::string text;
  char digits[3];
  for (size_t i = size; i-- > 0;) {
    std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(data)[i]);
    text += digits;
  }
  return text;
}

// "name=kind:dtype:bits;" of each attribute, dictionaries in braces.
static std::string Told(const XLA_FFI_Attrs& attrs) {
  std::string text;
  for (int64_t i = 0; i < attrs.size; ++i) {
    text += std::string(attrs.names[i]->ptr, attrs.names[i]->len) + "=";
    switch (attrs.types[i]) {
      case XLA_FFI_AttrType_SCALAR: {
        auto* x = static_cast<XLA_FFI_Scalar*>(attrs.attrs[i]);
        auto dtype = static_cast<ffi::DataType>(x->dtype);
        text += std::to_string(x->dtype) + ":" + Hex(x->value, ffi::ByteWidth(dtype));
        break;
      }
      case XLA_FFI_AttrType_ARRAY: {
        auto* x = static_cast<XLA_FFI_Array*>(attrs.attrs[i]);
        size_t width = ffi::ByteWidth(static_cast<ffi::DataType>(x->dtype));
        text += "array:" + std::to_string(x->dtype);
        for (size_t k = 0; k < x->size; ++k) {
          text += ":" + Hex(static_cast<const char*>(x->data) + k * width, width);
        }
        break;
      }
      case XLA_FFI_AttrType_STRING: {
        auto* x = static_cast<XLA_FFI_ByteSpan*>(attrs.attrs[i]);
        text += "text:" + std::string(x->ptr, x->len);
        break;
      }
      case XLA_FFI_AttrType_DICTIONARY:
        text += "{" + Told(*static_cast<XLA_FFI_Attrs*>(attrs.attrs[i])) + "}";
        break;
    }
    text += ";";
  }
  return text;
}

// The attributes as text in a result of bytes. The frame itself is read: `Dictionary` tells no types.
extern "C" XLA_FFI_Error* Attributes(XLA_FFI_CallFrame* frame) {
  static auto* ready = ffi::Ffi::Bind()
                           .RemainingArgs()
                           .RemainingRets()
                           .To([](ffi::RemainingArgs, ffi::RemainingRets) {
                             return ffi::Error::Success();
                           })
                           .release();
  if (frame->rets.size == 1) {
    auto* out = static_cast<XLA_FFI_Buffer*>(frame->rets.rets[0]);
    std::string text = Told(frame->attrs);
    std::memset(out->data, 0, out->dims[0]);
    std::memcpy(out->data, text.data(), std::min<size_t>(text.size(), out->dims[0]));
  }
  return ready->Call(frame);  // which says what version of the API this is
}

// How many bytes a buffer has: elements of less than a byte are packed, which `size_bytes` ignores.
static size_t Bytes(const ffi::AnyBuffer& x) {
  switch (x.element_type()) {
    case ffi::DataType::S2:
    case ffi::DataType::U2:
      return (x.element_count() + 3) / 4;
    case ffi::DataType::S4:
    case ffi::DataType::U4:
    case ffi::DataType::F4E2M1FN:
      return (x.element_count() + 1) / 2;
    default:
      return x.size_bytes();
  }
}

// The bytes of the operand, in the order in which they lie.
static ffi::Error CopyBytes(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  if (Bytes(x) != Bytes(*y)) return ffi::Error::InvalidArgument("copy: unequal sizes");
  std::memcpy(y->untyped_data(), x.untyped_data(), Bytes(x));
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Copy, CopyBytes,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

// x + step, with numbers of the operands and results that share a buffer, and what was called how
// often.
static std::atomic<int64_t> calls{0};
static ffi::Error AddStep(float step, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y,
                          ffi::ResultBuffer<ffi::S32> shared) {
  ++calls;
  *shared->typed_data() = x.typed_data() == y->typed_data();
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] + step;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Add, AddStep,
                              ffi::Ffi::Bind()
                                  .Attr<float>("step")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::S32>>());

// a + 10 b for whole arrays or rows, where one of them may have a leading axis of size 1.
static ffi::Error SumOf(ffi::Buffer<ffi::F32> a, ffi::Buffer<ffi::F32> b,
                        ffi::ResultBuffer<ffi::F32> y) {
  ++calls;
  size_t n = y->element_count(), na = a.element_count(), nb = b.element_count();
  if (na == 0 || nb == 0) return ffi::Error::Success();
  for (size_t i = 0; i < n; ++i) {
    y->typed_data()[i] = a.typed_data()[i % na] + 10 * b.typed_data()[i % nb];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Sum, SumOf,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

static ffi::Error Counted(ffi::RemainingArgs, ffi::RemainingRets) {
  ++calls;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Count, Counted,
                              ffi::Ffi::Bind().RemainingArgs().RemainingRets());

static ffi::Error Failed(ffi::RemainingArgs, ffi::RemainingRets) {
  return ffi::Error(ffi::ErrorCode::kFailedPrecondition, "the handler is not in the mood");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Fail, Failed, ffi::Ffi::Bind().RemainingArgs().RemainingRets());

// A function of the API before handlers: out, then the operands' pointers.
extern "C" void Untyped(float* out, const float** in) { out[0] = 2 * in[0][0]; }

extern "C" int64_t Calls() { return calls; }
