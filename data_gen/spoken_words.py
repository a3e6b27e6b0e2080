"""Words and patterns of the rules from written to spoken English."""

NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
DAY = r"0?[1-9]|[12]\d|3[01]"
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
MONTH = "|".join([*MONTHS, *(m[:3] + r"\b\.?" for m in MONTHS if m != "May"), r"Sept\b\.?"])
ABBREVIATIONS = {
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Jr": "Junior",
    "Sr": "Senior",
    "Prof": "Professor",
    "Capt": "Captain",
    "Lt": "Lieutenant",
    "Sgt": "Sergeant",
    "Gen": "General",
    "Gov": "Governor",
    "Sen": "Senator",
    "Rev": "Reverend",
    "Mt": "Mount",
    "Ft": "Fort",
    "Ave": "Avenue",
    "Blvd": "Boulevard",
    "Rd": "Road",
    "Apt": "Apartment",
    "Dept": "Department",
    "Inc": "Incorporated",
    "Ltd": "Limited",
    "Corp": "Corporation",
    "Co": "Company",
    "vs": "versus",
    "etc": "et cetera",
    "approx": "approximately",
    "e.g": "for example",
    "i.e": "that is",
}
COINS = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
}
SCALES = {
    "k": "thousand",
    "m": "million",
    "bn": "billion",
    "b": "billion",
    **{word: word for word in ("thousand", "million", "billion", "trillion")},
}
UNITS = {
    "km/h": ("kilometer an hour", "kilometers an hour"),
    "mph": ("mile an hour", "miles an hour"),
    "km": ("kilometer", "kilometers"),
    "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"),
    "m": ("meter", "meters"),
    "ft": ("foot", "feet"),
    "kg": ("kilogram", "kilograms"),
    "mg": ("milligram", "milligrams"),
    "g": ("gram", "grams"),
    "lbs": ("pound", "pounds"),
    "lb": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "ml": ("milliliter", "milliliters"),
    "l": ("liter", "liters"),
    "GB": ("gigabyte", "gigabytes"),
    "MB": ("megabyte", "megabytes"),
    "TB": ("terabyte", "terabytes"),
    "GHz": ("gigahertz", "gigahertz"),
    "MHz": ("megahertz", "megahertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "Hz": ("hertz", "hertz"),
    "kW": ("kilowatt", "kilowatts"),
    "hrs": ("hour", "hours"),
    "hr": ("hour", "hours"),
    "min": ("minute", "minutes"),
    "sec": ("second", "seconds"),
    "°C": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", "degrees"),
    "%": ("percent", "percent"),
    "¢": ("cent", "cents"),
}
NUMBERED = (
    "War|Chapter|Part|Volume|Book|Act|Scene|Section|Article|Appendix|Phase|Type|Bowl|Class|"
    "Level|Version|Mark|Apollo|Stage|Title|Unit|Episode"
)
RULERS = (
    "Henry|Louis|George|Charles|James|Edward|William|Richard|Elizabeth|Mary|John|Paul|Pius|"
    "Benedict|Gregory|Leo|Clement|Innocent|Philip|Frederick|Napoleon|Nicholas|Alexander|Peter|"
    "Catherine|Ivan|Gustav|Christian|Haakon|Robert|David|Stephen|Victor|Ferdinand|Alfonso"
)
CODED = "room|flight|zip|code|extension|ext|pin|number|account|order|invoice|suite|apartment|route"
LETTERED = "vitamin|plan|grade|type|hepatitis|gate|letter|group|team|row|exhibit|option"
