// Root-mean-square normalisation of the last axis, forward and backward, for float and double:
//
//   r = 1 / sqrt(mean(x^2) + eps)        y = x r        dx = r ct - x r^3 mean(x ct)
//
// Each handler is a plain function, and a binding that says what XLA is to hand to it: attributes by
// name, operands and results in order. XLA compares what a call gives with the binding, and calls
// the function only if they agree.

#include <cmath>
#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// The rows and columns of an array that is taken as rows along its last axis.
struct Rows {
  int64_t count, length;
};

static ffi::ErrorOr<Rows> RowsOf(const ffi::AnyBuffer& x) {
  if (x.dimensions().size() == 0) {
    return ffi::Unexpected(ffi::Error::InvalidArgument("rms_norm: x needs an axis"));
  }
  int64_t length = x.dimensions().back();
  return Rows{length == 0 ? 0 : static_cast<int64_t>(x.element_count()) / length, length};
}

template <typename T>
static void Forward(Rows rows, double eps, const T* x, T* y, T* r) {
  for (int64_t i = 0; i < rows.count; ++i, x += rows.length, y += rows.length) {
    T squares = 0;
    for (int64_t j = 0; j < rows.length; ++j) squares += x[j] * x[j];
    r[i] = 1 / std::sqrt(squares / rows.length + static_cast<T>(eps));
    for (int64_t j = 0; j < rows.length; ++j) y[j] = x[j] * r[i];
  }
}

template <typename T>
static void Backward(Rows rows, const T* r, const T* x, const T* ct, T* dx) {
  for (int64_t i = 0; i < rows.count; ++i, x += rows.length, ct += rows.length, dx += rows.length) {
    T product = 0;
    for (int64_t j = 0; j < rows.length; ++j) product += x[j] * ct[j];
    T slope = product / rows.length * r[i] * r[i] * r[i];
    for (int64_t j = 0; j < rows.length; ++j) dx[j] = ct[j] * r[i] - x[j] * slope;
  }
}

static ffi::Error RmsNormForward(double eps, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y,
                                 ffi::Result<ffi::AnyBuffer> r) {
  ffi::ErrorOr<Rows> rows = RowsOf(x);
  if (rows.has_error()) return rows.error();
  switch (x.element_type()) {
    case ffi::F32:
      Forward<float>(*rows, eps, x.typed_data<float>(), y->typed_data<float>(),
                     r->typed_data<float>());
      return ffi::Error::Success();
    case ffi::F64:
      Forward<double>(*rows, eps, x.typed_data<double>(), y->typed_data<double>(),
                      r->typed_data<double>());
      return ffi::Error::Success();
    default:
      return ffi::Error::InvalidArgument("rms_norm: x is float32 or float64");
  }
}

static ffi::Error RmsNormBackward(ffi::AnyBuffer r, ffi::AnyBuffer x, ffi::AnyBuffer ct,
                                  ffi::Result<ffi::AnyBuffer> dx) {
  ffi::ErrorOr<Rows> rows = RowsOf(x);
  if (rows.has_error()) return rows.error();
  switch (x.element_type()) {
    case ffi::F32:
      Backward<float>(*rows, r.typed_data<float>(), x.typed_data<float>(), ct.typed_data<float>(),
                      dx->typed_data<float>());
      return ffi::Error::Success();
    case ffi::F64:
      Backward<double>(*rows, r.typed_data<double>(), x.typed_data<double>(),
                       ct.typed_data<double>(), dx->typed_data<double>());
      return ffi::Error::Success();
    default:
      return ffi::Error::InvalidArgument("rms_norm: x is float32 or float64");
  }
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, RmsNormForward,
                              ffi::Ffi::Bind()
                                  .Attr<double>("eps")
                                  .Arg<ffi::AnyBuffer>()    // x
                                  .Ret<ffi::AnyBuffer>()    // y
                                  .Ret<ffi::AnyBuffer>());  // r, one for each row
XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNormGrad, RmsNormBackward,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::AnyBuffer>()    // r
                                  .Arg<ffi::AnyBuffer>()    // x
                                  .Arg<ffi::AnyBuffer>()    // the cotangent of y
                                  .Ret<ffi::AnyBuffer>());  // that of x
