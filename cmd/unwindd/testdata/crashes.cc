// SPDX-License-Identifier: Apache-2.0

// A program whose thread crashes for one of three reasons, while another thread is anywhere: crashes null|abort|divide N.
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#define APART __attribute__((noinline))

static volatile int sink, steps, place, *nothing; // steps are of the thread that is anywhere

APART void rest(int n) { std::this_thread::sleep_for(std::chrono::seconds(n)); }
APART void spin() {
	for (;;)
		steps = steps + 1;
}
APART void walk(int depth) {
	if (depth > 0)
		walk(depth - 1);
	else if (place % 2)
		spin();
	else
		rest(100);
	steps = steps + 1;
}

static void wander() { walk(place); }

APART int parse_header() { return *nothing + 1; }
APART int check_totals(int total) {
	if (total == 0)
		throw std::runtime_error("no total");
	return total;
}
APART int average(int sum) { return sum / sink; }

static void refund(std::string cause) {
	std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the other thread gets to its place
	if (cause == "null")
		sink = parse_header() + 1;
	else if (cause == "abort")
		sink = check_totals(sink) + 1;
	else
		sink = average(7) + 1;
}

int main(int argc, char **argv) {
	if (argc != 3)
		return 2;
	place = std::atoi(argv[2]);
	std::thread other(wander), crashing(refund, std::string(argv[1]));
	crashing.join();
	return 0;
}
