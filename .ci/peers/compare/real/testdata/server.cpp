// SPDX-License-Identifier: Apache-2.0

// A server whose threads move money between two accounts: server FOLDER NUMBER. It listens on
// FOLDER/NUMBER.socket. A request is a byte: 't' moves from the first account to the second, 'd' has two
// threads move in opposite directions and meet.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>

#include "state.h"

#define APART __attribute__((noinline))

namespace {

struct Account {
	std::mutex mutex;
	long money = 0;
};

Account accounts[2];
std::mutex queue_mutex;
std::condition_variable queue_filled;
std::deque<int> queue;
volatile unsigned long work;

APART void wait_for_other() {
	static std::mutex mutex;
	static std::condition_variable met;
	static int here;
	std::unique_lock<std::mutex> lock(mutex);
	here++;
	met.notify_all();
	met.wait(lock, [] { return here >= 2; });
}

APART void transfer(Account &from, Account &to, bool meets) {
	std::lock_guard<std::mutex> first(from.mutex);
	if (meets)
		wait_for_other();
	std::lock_guard<std::mutex> second(to.mutex);
	for (int i = 0; i < 20000; i++)
		work = work + i;
	from.money--;
	to.money++;
}

APART void refund() { transfer(accounts[1], accounts[0], true); }

APART void charge(bool meets) { transfer(accounts[0], accounts[1], meets); }

APART void serve_request(int client) {
	char request;
	while (read(client, &request, 1) == 1) {
		if (request == 'd') {
			std::thread(refund).detach();
			charge(true);
		} else {
			charge(false);
		}
		if (write(client, "k", 1) != 1)
			break;
	}
	close(client);
}

APART void worker() {
	for (;;) {
		std::unique_lock<std::mutex> lock(queue_mutex);
		queue_filled.wait(lock, [] { return !queue.empty(); });
		int client = queue.front();
		queue.pop_front();
		lock.unlock();
		serve_request(client);
	}
}

APART void accept_clients(int listener) {
	for (;;) {
		int client = accept(listener, nullptr, nullptr);
		if (client < 0)
			continue;
		std::lock_guard<std::mutex> lock(queue_mutex);
		queue.push_back(client);
		queue_filled.notify_one();
	}
}

} // namespace

int main(int argc, char **argv) {
	if (argc != 3)
		return 2;
	std::string folder = argv[1];
	sockaddr_un address = {};
	address.sun_family = AF_UNIX;
	snprintf(address.sun_path, sizeof address.sun_path, "%s/%s.socket", argv[1], argv[2]);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) || listen(listener, 64))
		return 3;
	std::vector<std::thread> workers;
	for (int i = 0; i < 3; i++)
		workers.emplace_back(worker);
	state_write(argv[1], "ready", atoi(argv[2]));
	accept_clients(listener);
}
