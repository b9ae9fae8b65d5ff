# Objects of most kinds: instances, lists, tuples, dictionaries, sets, strings, numbers, functions and closures.
class Order:
    def __init__(self, number, customer):
        self.number = number
        self.customer = customer
        self.items = []
        self.price = 0.0

    def add(self, article, amount):
        self.items.append((article, amount, article * amount % 97))
        self.price += article * 1.25


def counter(start):
    return lambda: start + 1


orders = [Order(number, "customer " + str(number % 500)) for number in range(60000)]
for order in orders:
    for item in range(order.number % 5):
        order.add(order.number * 7 % 3001 + item, item + 1)

by_customer = {}
for order in orders:
    by_customer.setdefault(order.customer, []).append(order)

words = {("word %d" % (number * 31 % 20011)) for number in range(20000)}
large = [1 << number % 200 for number in range(20000)]
counters = [counter(number) for number in range(5000)]
text = bytes(100000) + bytearray(100000)
total = sum(count() for count in counters)
for round in range(80):
    total += sum(order.price for order in orders)
print(len(orders), len(by_customer), len(words), total)
