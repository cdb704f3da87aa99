// SPDX-License-Identifier: Apache-2.0
// An addon whose function calls a function of JavaScript, and frames of C between.
#include <node_api.h>

static __attribute__((noinline)) napi_value call(napi_env env, napi_value function, int depth) {
  napi_value result = NULL, global;
  if (depth > 0) {
    result = call(env, function, depth - 1);
    __asm__ volatile("");
    return result;
  }
  napi_get_global(env, &global);
  napi_call_function(env, global, function, 0, NULL, &result);
  return result;
}

static napi_value through(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value function;
  napi_get_cb_info(env, info, &count, &function, NULL, NULL);
  return call(env, function, 3);
}

NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, "through", NAPI_AUTO_LENGTH, through, NULL, &function);
  napi_set_named_property(env, exports, "through", function);
  return exports;
}
