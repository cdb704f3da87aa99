// SPDX-License-Identifier: Apache-2.0

// Coroutines of C++20: a generator, and tasks that go on in each other.

#include <coroutine>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

template <typename T> struct task {
	struct promise_type {
		T value{};
		std::exception_ptr error;
		std::coroutine_handle<> next;
		task get_return_object() { return task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
		std::suspend_always initial_suspend() noexcept { return {}; }
		struct final_awaiter {
			bool await_ready() noexcept { return false; }
			std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
				return h.promise().next ? h.promise().next : std::noop_coroutine();
			}
			void await_resume() noexcept {}
		};
		final_awaiter final_suspend() noexcept { return {}; }
		void return_value(T v) { value = std::move(v); }
		std::suspend_always yield_value(T v) {
			value = std::move(v);
			return {};
		}
		void unhandled_exception() { error = std::current_exception(); }
	};
	std::coroutine_handle<promise_type> handle;
	explicit task(std::coroutine_handle<promise_type> h) : handle(h) {}
	task(task &&o) noexcept : handle(std::exchange(o.handle, nullptr)) {}
	~task() {
		if (handle)
			handle.destroy();
	}
	bool await_ready() { return false; }
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) {
		handle.promise().next = h;
		return handle;
	}
	T await_resume() {
		if (handle.promise().error)
			std::rethrow_exception(handle.promise().error);
		return handle.promise().value;
	}
};

task<int> numbers(int n) {
	for (int i = 0; i < n; i++)
		co_yield i * i;
	co_return -1;
}

task<std::string> text(int n) {
	if (n == 3)
		throw std::string("three");
	if (n > 0) {
		std::string inner = co_await text(n - 1);
		co_return inner + std::to_string(n);
	}
	co_return "begin";
}

task<int> caught(int n) {
	try {
		std::string s = co_await text(n);
		co_return (int)s.size();
	} catch (const std::string &s) {
		co_return -(int)s.size();
	}
}

int main() {
	int sum = 0;
	auto g = numbers(6);
	while (!g.handle.done()) {
		g.handle.resume();
		sum += g.handle.promise().value;
	}
	for (int i = 0; i < 6; i++) {
		auto t = caught(i);
		t.handle.resume();
		sum += t.handle.promise().value;
	}
	printf("%d\n", sum);
	return 0;
}
